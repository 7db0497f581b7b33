-- A tick was seen to: the schedule goes on to its next one.
UPDATE windlass_schedules
SET last_at = :last_at, next_at = :next_at, last_job = :last_job, missed = :missed, skipped = :skipped
WHERE name = :name
