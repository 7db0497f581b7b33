-- New jobs that wait for others, alike but for [[id, payload, idempotency key, concurrency key, parent, flow, parents, takes,
-- how many those are], …]. None has a slot: that is for those who are due.
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, parent, flow, parents, takes, waits, lag, queue, type, status, reason, urgency,
    rank, run_at, max_attempts, created_at, updated_at, tenant, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, lane
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8, :lag,
    :queue, :type, 'blocked', 'waits for its parent', :urgency, :rank, :run_at, :max_attempts, :now, :now, :tenant,
    :timeout, :expires_at, :tags, :meta, :window, :key_limit, :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
FROM json_each(:batch)
