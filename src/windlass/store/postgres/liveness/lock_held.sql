-- Lock all that one runner runs, in order; a settlement of its own in flight goes first. By ids, so that the order
-- does not make the planner scan the table. With a lock_timeout: a caller's open transaction may hold one of them.
SELECT id::text, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
WHERE job.id = ANY (ARRAY(SELECT held.id FROM windlass.jobs AS held WHERE held.status = 'running' AND held.worker = :runner))
    AND job.status = 'running' AND job.worker = :runner AND (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL
ORDER BY job.id FOR UPDATE
