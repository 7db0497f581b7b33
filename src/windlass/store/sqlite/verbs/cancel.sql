-- name: descendants
-- The dependents of these jobs, direct or not, each with one of its parents, and whether it waits for the end of that parent only.
-- The search stops at finished dependents: theirs are finished too, or were released by them.
WITH RECURSIVE down (child, parent, when_ended) AS (
    SELECT dependency.child, dependency.parent, dependency.when_ended
    FROM json_each(:ids) AS gone CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = gone.value
    LEFT JOIN windlass_jobs AS child_job ON child_job.id = dependency.child
    WHERE child_job.id IS NOT NULL OR dependency.when_ended
    UNION
    SELECT dependency.child, dependency.parent, dependency.when_ended
    FROM down CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = down.child
    LEFT JOIN windlass_jobs AS child_job ON child_job.id = dependency.child
    WHERE NOT down.when_ended AND (child_job.id IS NOT NULL OR dependency.when_ended)
)
SELECT child, min(parent), when_ended FROM down GROUP BY child, when_ended

-- name: cancellable
SELECT id, queue, idempotency_key, idempotency_window, concurrency_key FROM windlass_jobs
WHERE id IN (SELECT value ->> 0 FROM json_each(:batch))

-- name: cancel
-- Copy the waiting jobs of [[id, reason], …] into history. CROSS JOIN makes SQLite go from the batch to the jobs.
INSERT INTO windlass_history (
    id, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
    worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
    result, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule,
    tick, result_params, parent_results, pending_parents, delay_after_parents
)
SELECT job.id, queue, job.type, payload, 'cancelled', cancelled.value ->> 1, sort_priority + aged_by, run_at, attempt,
    max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes, created_at, :now, claimed_at,
    started_at, :now,
    :now + coalesce((SELECT keep_cancelled FROM windlass_queues AS q WHERE q.name = job.queue), :keep), worker,
    idempotency_key, concurrency_key, tenant, job.parent, flow, parents, timeout, expires_at, cancel_requested, NULL,
    error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick,
    result_params, parent_results, pending_parents, delay_after_parents
FROM json_each(:batch) AS cancelled CROSS JOIN windlass_jobs AS job ON job.id = cancelled.value ->> 0

-- name: expired
SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_expiring
WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running' ORDER BY expires_at, id LIMIT :limit

-- name: expired_heads
-- The expired jobs among those that a claim would take next.
SELECT id FROM (
    SELECT id, expires_at FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    ORDER BY sort_priority, rank, id LIMIT :limit
) WHERE expires_at <= :now
