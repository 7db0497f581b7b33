-- Lock schedules that are about to be changed or fired, in order.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules WHERE name = ANY(:names::text[]) ORDER BY name FOR UPDATE
