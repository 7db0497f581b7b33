-- Waiting jobs are called off, all of the batch at once: [[id, reason], …]. CROSS JOIN pins the order: the batch drives.
INSERT INTO windlass_history
SELECT job.id, queue, job.type, payload, 'cancelled', s.value ->> 1, urgency + aged_by, run_at, attempt, max_attempts, failures,
    crashes, rescues, suspicions, hand_backs, snoozes, created_at, :now, claimed_at, started_at, :now,
    :now + coalesce((SELECT keep_cancelled FROM windlass_queues AS q WHERE q.name = job.queue), :keep), worker,
    idempotency_key, concurrency_key, tenant, job.parent, flow, parents, timeout, expires_at, cancel_requested, NULL,
    error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick,
    takes, inputs, waits, lag
FROM json_each(:batch) AS s CROSS JOIN windlass_jobs AS job ON job.id = s.value ->> 0
