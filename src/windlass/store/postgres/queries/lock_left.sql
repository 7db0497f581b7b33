-- What runners without a lease are still running, a portion at a time. What somebody settles at this moment is left to
-- him; it is an orphan if he gives up. In no order: nobody is waited for, and an order would lead the planner through the
-- whole table.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs
WHERE status = 'running' AND worker = ANY (:runners::text[]) AND claimed_at <= :before::bigint
LIMIT :limit::integer FOR UPDATE SKIP LOCKED
