-- What runners without a lease are still running, a portion at a time. What somebody settles at this moment is left to
-- him; it is an orphan if he gives up.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE status = 'running' AND worker = ANY (:runners::text[]) AND claimed_at <= :before::bigint
ORDER BY job.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
