-- Insert schedules whose names are free, in order, to avoid deadlocks; returns their names.
INSERT INTO windlass.schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
)
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json)
ON CONFLICT (name) DO NOTHING
RETURNING name
