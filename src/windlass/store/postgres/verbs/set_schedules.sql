-- Write schedules, locked by the caller.
UPDATE windlass.schedules AS schedule
SET declared = now.declared, changed = now.changed, paused = now.paused, last_at = now.last_at, next_at = now.next_at,
    last_job = now.last_job, missed = now.missed, skipped = now.skipped, revision = now.revision
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json) AS now
WHERE schedule.name = now.name AND schedule.name = ANY(:names::text[])
