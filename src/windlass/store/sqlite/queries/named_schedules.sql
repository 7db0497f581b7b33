-- Schedules by their names.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules WHERE name IN (SELECT value FROM json_each(:names))
