-- One running attempt, if it is this one.
SELECT id, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at, concurrency_key, key_strict
FROM windlass_jobs WHERE id = :id AND attempt = :attempt AND status = 'running'
