-- Running attempts, if they are these ones, locked in the order of their ids. By their ids: a plan that was made while
-- little was running would else walk through all that is.
SELECT job.id::text, queue, type, job.attempt, max_attempts, failures, crashes, worker, claimed_at, started_at,
    cancel_requested, reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
JOIN unnest(:ids::uuid[], :attempts::integer[]) AS wanted (id, attempt) ON job.id = wanted.id AND job.attempt = wanted.attempt
WHERE job.status || '' = 'running' ORDER BY job.id FOR UPDATE OF job
