-- New schedules, but for those whose names are taken: which are new. In their order, so that nobody waits in a circle.
INSERT INTO windlass.schedules (
    name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
)
SELECT name, declared, changed, paused, created_at, last_at, next_at, last_job, missed, skipped, revision
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json)
ON CONFLICT (name) DO NOTHING
RETURNING name
