-- Write the next ticks of locked schedules.
UPDATE windlass.schedules AS schedule
SET last_at = now.last_at, next_at = now.next_at, last_job = now.last_job, missed = now.missed, skipped = now.skipped
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json) AS now
WHERE schedule.name = now.name AND schedule.name = ANY(:names::text[])
