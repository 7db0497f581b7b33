-- A running attempt's handler has started.
UPDATE windlass_jobs SET started_at = claimed_at + :after
WHERE id = :id AND attempt = :attempt AND status = 'running' AND started_at IS NULL
