-- All that one runner is running. A settlement of its own that is still under way goes first.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE status = 'running' AND worker = :runner
ORDER BY job.id FOR UPDATE
