-- A finished job goes back among the living, with a fresh budget and no expiry; its attempts are not forgotten. With a key
-- it goes to the line.
INSERT INTO windlass_jobs (
    id, queue, type, payload, status, reason, urgency, rank, run_at, attempt, max_attempts, rescues, suspicions, hand_backs, snoozes,
    created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, error,
    attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, takes, inputs, lane
)
SELECT id, queue, type, payload, CASE WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
    CASE WHEN concurrency_key IS NOT NULL THEN 'in line for its key' END, urgency, :now, :now, attempt, max_attempts, rescues, suspicions, hand_backs, snoozes,
    created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, error, :attempts,
    tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, takes, inputs, (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = queue AND fair)
FROM windlass_history WHERE id = :id
