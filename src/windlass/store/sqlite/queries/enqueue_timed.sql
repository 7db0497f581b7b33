-- New jobs that each have a time of their own, alike but for [[id, payload, idempotency key, concurrency key, slot, status,
-- reason, rank, run_at, expires_at, schedule, tick], …].
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, slot, status, reason, rank, run_at, expires_at, schedule, tick,
    queue, type, urgency, max_attempts, created_at, updated_at, tenant, parent, flow, timeout, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, lane
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11,
    :queue, :type, :urgency, :max_attempts, :now, :now, :tenant, :parent, :flow, :timeout, :tags, :meta, :window,
    :key_limit, :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
FROM json_each(:batch)
