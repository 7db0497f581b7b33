-- Cancelled jobs, locked by the caller, wait for their parents again, with a fresh budget and no expiry.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) RETURNING *
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN partition < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
INSERT INTO windlass.jobs (
    id, queue, type, payload, status, reason, sort_priority, rank, run_at, attempt, max_attempts, rescues, suspicions,
    requeues, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, pending_parents, delay_after_parents, has_dependents, tenant_queue
)
SELECT id, queue, type, payload, 'blocked', 'waits for its parent', sort_priority, run_at, run_at, attempt, max_attempts, rescues,
    suspicions, requeues, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, pending_parents, delay_after_parents, EXISTS (SELECT FROM windlass.dependencies AS dependency WHERE dependency.parent = gone.id OFFSET 0), (
        SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue
    )
FROM gone
