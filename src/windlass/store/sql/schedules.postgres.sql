-- name: due_schedules
-- Due schedules, the longest overdue first, and the current time.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job::text, missed, skipped, revision, now
FROM (SELECT :now AS now) AS clock CROSS JOIN windlass.schedules
WHERE next_at IS NOT NULL AND NOT paused AND next_at <= now ORDER BY next_at, name LIMIT :limit::integer

-- name: next_tick
-- The current time, and the earliest next tick of any schedule.
SELECT :now, (SELECT min(next_at) FROM windlass.schedules WHERE next_at IS NOT NULL AND NOT paused)

-- name: advance_schedules
UPDATE windlass.schedules AS schedule
SET last_at = now.last_at, next_at = now.next_at, last_job = now.last_job, missed = now.missed, skipped = now.skipped
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json) AS now
WHERE schedule.name = now.name AND schedule.name = ANY(:names::text[])

-- name: set_schedules
-- Write schedules that the caller has locked.
UPDATE windlass.schedules AS schedule
SET declared = now.declared, changed = now.changed, paused = now.paused, last_at = now.last_at, next_at = now.next_at,
    last_job = now.last_job, missed = now.missed, skipped = now.skipped, revision = now.revision
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json) AS now
WHERE schedule.name = now.name AND schedule.name = ANY(:names::text[])

-- name: add_schedules
-- Insert schedules whose names are free, in order, to avoid deadlocks; returns their names.
INSERT INTO windlass.schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
)
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json)
ON CONFLICT (name) DO NOTHING
RETURNING name
