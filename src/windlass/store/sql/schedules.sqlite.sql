-- name: due_schedules
-- Due schedules, the longest overdue first, and the current time.
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision, :now
FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE next_at IS NOT NULL AND paused = 0 AND next_at <= :now ORDER BY next_at, name LIMIT :limit

-- name: next_tick
-- The current time, and the earliest next tick of any schedule.
SELECT :now, min(next_at) FROM windlass_schedules INDEXED BY windlass_schedules_due WHERE next_at IS NOT NULL AND paused = 0

-- name: advance_schedules
UPDATE windlass_schedules
SET last_at = now.value ->> 'last_at', next_at = now.value ->> 'next_at', last_job = now.value ->> 'last_job',
    missed = now.value ->> 'missed', skipped = now.value ->> 'skipped'
FROM json_each(:rows) AS now WHERE windlass_schedules.name = now.value ->> 'name'

-- name: set_schedules
UPDATE windlass_schedules
SET declared = now.value ->> 'declared', changed = now.value ->> 'changed', paused = now.value ->> 'paused',
    last_at = now.value ->> 'last_at', next_at = now.value ->> 'next_at', last_job = now.value ->> 'last_job',
    missed = now.value ->> 'missed', skipped = now.value ->> 'skipped', revision = now.value ->> 'revision'
FROM json_each(:rows) AS now WHERE windlass_schedules.name = now.value ->> 'name'

-- name: add_schedules
-- Insert schedules whose names are free; returns their names.
INSERT INTO windlass_schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
)
SELECT value ->> 'name', value ->> 'declared', value ->> 'changed', value ->> 'paused', value ->> 'created_at',
    value ->> 'last_at', value ->> 'next_at', value ->> 'last_job', value ->> 'missed', value ->> 'skipped',
    value ->> 'revision'
FROM json_each(:rows) WHERE true
ON CONFLICT (name) DO NOTHING
RETURNING name
