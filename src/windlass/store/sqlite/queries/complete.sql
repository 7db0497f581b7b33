-- Completed: into history, all of one queue's batch at once: [[id, attempt, started_after, result], …]. CROSS JOIN pins
-- the order: the batch drives, jobs are looked up. What is not running as the batch says is left out, which shows.
INSERT INTO windlass_history
SELECT job.id, queue, job.type, payload, 'completed', NULL, urgency + aged_by, run_at, attempt, max_attempts,
    failures, crashes, rescues, suspicions, hand_backs, snoozes, created_at, :now, claimed_at,
    coalesce(claimed_at + (s.value ->> 2), started_at), :now, :now + :keep,
    worker, idempotency_key, concurrency_key, tenant, job.parent, flow, parents, timeout, expires_at,
    cancel_requested, s.value ->> 3, NULL, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, takes, inputs, waits, lag
FROM json_each(:batch) AS s CROSS JOIN windlass_jobs AS job
ON job.id = s.value ->> 0 AND job.attempt = s.value ->> 1 AND job.status = 'running'
