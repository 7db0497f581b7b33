-- name: named_schedules
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules WHERE name IN (SELECT value FROM json_each(:names))

-- name: schedules
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules ORDER BY name

-- name: set_schedule
INSERT INTO windlass_schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
) VALUES (
    :name, :declared, :changed, :paused, :created_at, :last_at, :next_at, :last_job, :missed, :skipped, :revision
)
ON CONFLICT (name) DO UPDATE SET
    declared = excluded.declared, changed = excluded.changed, paused = excluded.paused, last_at = excluded.last_at,
    next_at = excluded.next_at, last_job = excluded.last_job, missed = excluded.missed, skipped = excluded.skipped,
    revision = excluded.revision

-- name: drop_schedule
DELETE FROM windlass_schedules WHERE name = :name

-- name: advance_schedule
UPDATE windlass_schedules
SET last_at = :last_at, next_at = :next_at, last_job = :last_job, missed = :missed, skipped = :skipped
WHERE name = :name

-- name: due_schedules
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM windlass_schedules INDEXED BY windlass_schedules_due
WHERE next_at IS NOT NULL AND paused = 0 AND next_at <= :now ORDER BY next_at, name LIMIT :limit

-- name: next_tick
SELECT min(next_at) FROM windlass_schedules INDEXED BY windlass_schedules_due WHERE next_at IS NOT NULL AND paused = 0
