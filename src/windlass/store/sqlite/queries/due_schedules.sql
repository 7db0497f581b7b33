-- Schedules of which a tick has come, the longest overdue first.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE next_at IS NOT NULL AND paused = 0 AND next_at <= :now ORDER BY next_at, name LIMIT :limit
