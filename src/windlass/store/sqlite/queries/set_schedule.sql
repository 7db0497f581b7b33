-- Write a schedule as it is now.
INSERT INTO windlass_schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
) VALUES (
    :name, :declared, :changed, :paused, :created_at, :last_at, :next_at, :last_job, :missed, :skipped, :revision
)
ON CONFLICT (name) DO UPDATE SET
    declared = excluded.declared, changed = excluded.changed, paused = excluded.paused, last_at = excluded.last_at,
    next_at = excluded.next_at, last_job = excluded.last_job, missed = excluded.missed, skipped = excluded.skipped,
    revision = excluded.revision
