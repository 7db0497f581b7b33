-- Schedules that are about to be changed or fired: locked in one order, so that nobody waits in a circle. Whoever had
-- to wait sees what the others made of them.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules WHERE name = ANY(:names::text[]) ORDER BY name FOR UPDATE
