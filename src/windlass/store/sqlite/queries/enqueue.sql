-- New jobs that differ only in [[id, payload, idempotency key, concurrency key, slot], …]; without :seated none has a slot.
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, slot, queue, type, status, reason, urgency, rank, run_at, max_attempts, created_at,
    updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    lane, schedule, tick
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, CASE WHEN :seated THEN value ->> 4 END, :queue, :type, :status, :reason, :urgency, :rank, :run_at,
    :max_attempts, :now, :now, :tenant, :parent, :flow, :parents, :timeout, :expires_at, :tags, :meta, :window,
    :key_limit, :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair), :schedule, :tick
FROM json_each(:batch)
