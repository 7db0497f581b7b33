-- name: lock_live
-- Lock live jobs, in order. A job that is settled while the statement waits for its lock is not returned.
SELECT id::text, status, reason, run_at, rank, queue, sort_priority, idempotency_key, concurrency_key, key_slot
FROM windlass.jobs AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR UPDATE

-- name: finished
SELECT id::text, status, queue, sort_priority, idempotency_key, pending_parents FROM windlass.history
WHERE id = ANY (:ids::uuid[])

-- name: request_cancel
-- Ask running jobs, which the caller has locked, to stop. By ids, not by a scan of all running jobs.
UPDATE windlass.jobs SET cancel_requested = true, reason = :reason::text, updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status || '' = 'running'

-- name: retry_failed
-- Failed jobs become pending, or wait for their key, with a fresh budget and no expiry. By ids, not by a scan of all
-- failed jobs.
WITH back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
        run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0, expires_at = NULL,
        tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' = 'failed'
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM back

-- name: failed_parents
-- Parents of cancelled jobs that ended without completing, or are dropped.
SELECT child.id::text, dependency.parent::text FROM windlass.history AS child
CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
CROSS JOIN LATERAL (
    SELECT parent FROM windlass.dependencies AS known
    WHERE known.parent = named.parent::uuid AND known.child = child.id OFFSET 0
) AS dependency
WHERE child.id = ANY (:ids::uuid[])
AND NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = dependency.parent OFFSET 0)

-- name: attempts
SELECT id::text, status, attempt, attempts, worker, claimed_at, started_at, finished_at FROM windlass.history
WHERE id = ANY (:ids::uuid[])

-- name: revive
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
        CASE WHEN concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END, sort_priority, :now, :now,
        attempt, max_attempts, rescues, suspicions, requeues, snoozes, created_at, :now, idempotency_key,
        concurrency_key, tenant, parent, flow, parents, timeout, error, known.attempts, tags, meta,
        idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params,
        parent_results,
        EXISTS (SELECT FROM windlass.dependencies AS dependency WHERE dependency.parent = gone.id OFFSET 0),
        (SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue)
    FROM gone JOIN unnest(:ids::uuid[], :attempts::text[]) AS known (id, attempts) ON known.id = gone.id
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM back

-- name: run_now
-- Jobs become pending, or wait for their key, before their time; budget and expiry stay. By ids, not by a scan of all
-- waiting jobs.
WITH ready AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
        run_at = :now, rank = :now, updated_at = :now, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' IN ('scheduled', 'failed')
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM ready WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM ready
