-- All schedules.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules ORDER BY name
