-- Due schedules, the longest overdue first, and the current time.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision, now
FROM (SELECT :now AS now) AS clock CROSS JOIN windlass.schedules
WHERE next_at IS NOT NULL AND NOT paused AND next_at <= now ORDER BY next_at, name LIMIT :limit::integer
