-- All that one runner is running, in order. A settlement of its own that is still under way goes first. By the ids, so that
-- the order does not lead the planner through the whole table.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE job.id = ANY (ARRAY(SELECT held.id FROM windlass.jobs AS held WHERE held.status = 'running' AND held.worker = :runner))
    AND job.status = 'running' AND job.worker = :runner
ORDER BY job.id FOR UPDATE
