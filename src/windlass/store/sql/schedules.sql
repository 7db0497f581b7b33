-- name: named_schedules
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules WHERE name = ANY(:names::text[])

-- name: lock_schedules
-- Lock schedules that are about to be changed or fired, in order.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules WHERE name = ANY(:names::text[]) ORDER BY name FOR UPDATE

-- name: all_schedules
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision
FROM windlass.schedules ORDER BY name

-- name: drop_schedule
DELETE FROM windlass.schedules WHERE name = :name::text

-- name: closed_queues
SELECT name FROM windlass.queues WHERE name = ANY(:names::text[]) AND closed
