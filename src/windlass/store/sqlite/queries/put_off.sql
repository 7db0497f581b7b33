-- Failed or snoozed: back at :run_at, at the priority it was handed in with. Its slot is free, but for strict order.
UPDATE windlass_jobs
SET urgency = urgency + aged_by, aged_by = 0, status = :status, reason = :reason, run_at = :run_at, rank = :run_at, updated_at = :now,
    claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL,
    error = coalesce(:error, error), attempts = :attempts,
    failures = failures + :failures, snoozes = snoozes + :snoozes, slot = CASE WHEN key_strict THEN slot END
WHERE id = :id
