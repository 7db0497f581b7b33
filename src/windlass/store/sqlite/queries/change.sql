-- Change a waiting job.
UPDATE windlass_jobs
SET status = :status, reason = :reason, run_at = :run_at, rank = :rank, updated_at = :now,
    urgency = coalesce(:urgency, urgency), payload = coalesce(:payload, payload), queue = :queue,
    slot = :slot
WHERE id = :id
