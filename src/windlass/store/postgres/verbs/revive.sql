-- Finished jobs become pending, or wait for their key, with a fresh budget and no expiry; their attempts are kept.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) RETURNING *
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN partition < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
), back AS (
    INSERT INTO windlass.jobs (
        id, queue, type, payload, status, reason, sort_priority, rank, run_at, attempt, max_attempts, rescues, suspicions,
        requeues, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
        timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, result_params, parent_results, has_dependents, tenant_queue
    )
    SELECT gone.id, queue, type, payload, CASE WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END, sort_priority, :now, :now, attempt, max_attempts,
        rescues, suspicions, requeues, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent,
        flow, parents, timeout, error, known.attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate,
        rate_cost, schedule, tick, result_params, parent_results,
        EXISTS (SELECT FROM windlass.dependencies AS dependency WHERE dependency.parent = gone.id OFFSET 0),
        (SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue)
    FROM gone JOIN unnest(:ids::uuid[], :attempts::text[]) AS known (id, attempts) ON known.id = gone.id
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM back
