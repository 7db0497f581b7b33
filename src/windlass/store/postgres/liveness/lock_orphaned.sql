-- Lock a portion of what runners without a lease run; jobs that are being settled are skipped. Unordered, because an
-- order would make the planner scan the table.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs
WHERE status = 'running' AND worker = ANY (:runners::text[]) AND claimed_at <= :before::bigint
LIMIT :limit::integer FOR UPDATE SKIP LOCKED
