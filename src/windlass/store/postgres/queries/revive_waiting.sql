-- Cancelled jobs go back to wait for their parents, with a fresh budget and no expiry. The caller has locked them.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) RETURNING *
), counted AS (
    INSERT INTO windlass.tallies (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN shelf < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
INSERT INTO windlass.jobs (
    id, queue, type, payload, status, reason, urgency, rank, run_at, attempt, max_attempts, rescues, suspicions,
    hand_backs, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, takes, inputs, waits, lag, heirs, lane
)
SELECT id, queue, type, payload, 'blocked', 'waits for its parent', urgency, run_at, run_at, attempt, max_attempts, rescues,
    suspicions, hand_backs, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, takes, inputs, waits, lag, EXISTS (SELECT FROM windlass.edges AS edge WHERE edge.parent = gone.id OFFSET 0), (
        SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue
    )
FROM gone
