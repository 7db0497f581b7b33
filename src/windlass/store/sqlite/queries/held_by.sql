-- All that one runner is running.
SELECT id, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at, concurrency_key, key_strict
FROM windlass_jobs INDEXED BY windlass_jobs_held WHERE worker = :runner AND status = 'running' ORDER BY id
