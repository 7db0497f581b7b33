-- Lock running attempts, in the order of their ids. By ids: an old plan would scan all running jobs. With a
-- lock_timeout for the transaction: a caller's open transaction may hold one of them, or its key.
SELECT job.id::text, queue, type, job.attempt, max_attempts, failures, crashes, worker, claimed_at, started_at,
    cancel_requested, reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
JOIN unnest(:ids::uuid[], :attempts::integer[]) AS wanted (id, attempt) ON job.id = wanted.id AND job.attempt = wanted.attempt
WHERE job.status || '' = 'running' AND (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL
ORDER BY job.id FOR UPDATE OF job
