-- Cancelled jobs go back to wait for their parents, with a fresh budget and no expiry.
INSERT INTO windlass_jobs (
    id, queue, type, payload, status, reason, urgency, rank, run_at, attempt, max_attempts, rescues, suspicions, hand_backs, snoozes,
    created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, error,
    attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    takes, inputs, waits, lag, lane
)
SELECT id, queue, type, payload, 'blocked', 'waits for its parent', urgency, run_at, run_at, attempt, max_attempts, rescues,
    suspicions, hand_backs, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
    error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, takes, inputs, waits, lag,
    (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = queue AND fair)
FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
