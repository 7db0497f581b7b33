-- Ticks were seen to: their schedules, locked, go on to their next ones. What was said of them is not touched.
UPDATE windlass.schedules AS schedule
SET last_at = now.last_at, next_at = now.next_at, last_job = now.last_job, missed = now.missed, skipped = now.skipped
FROM json_populate_recordset(NULL::windlass.schedules, :rows::json) AS now
WHERE schedule.name = now.name AND schedule.name = ANY(:names::text[])
