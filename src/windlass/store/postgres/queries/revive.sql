-- Finished jobs go back among the living, with a fresh budget and no expiry; their attempts are not forgotten. With a key
-- they go to its line.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) RETURNING *
), counted AS (
    INSERT INTO windlass.tallies (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN shelf < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
), back AS (
    INSERT INTO windlass.jobs (
        id, queue, type, payload, status, reason, urgency, rank, run_at, attempt, max_attempts, rescues, suspicions,
        hand_backs, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
        timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, takes, inputs, heirs, lane
    )
    SELECT gone.id, queue, type, payload, CASE WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN concurrency_key IS NOT NULL THEN 'in line for its key' END, urgency, :now, :now, attempt, max_attempts,
        rescues, suspicions, hand_backs, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent,
        flow, parents, timeout, error, known.attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate,
        rate_cost, schedule, tick, takes, inputs,
        EXISTS (SELECT FROM windlass.edges AS edge WHERE edge.parent = gone.id OFFSET 0),
        (SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue)
    FROM gone JOIN unnest(:ids::uuid[], :attempts::text[]) AS known (id, attempts) ON known.id = gone.id
    RETURNING id, queue, urgency, rank, status, concurrency_key
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, urgency, rank FROM back
