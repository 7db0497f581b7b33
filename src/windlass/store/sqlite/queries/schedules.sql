-- Every schedule.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules ORDER BY name
