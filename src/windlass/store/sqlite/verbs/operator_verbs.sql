-- name: find_job
SELECT status, queue, idempotency_key, 0, concurrency_key, pending_parents FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, queue, idempotency_key, 1, concurrency_key, pending_parents FROM windlass_history WHERE id = :id

-- name: request_cancel
UPDATE windlass_jobs SET cancel_requested = 1, reason = :reason, updated_at = :now WHERE id = :id AND status = 'running'

-- name: retry_failed
-- A failed job becomes pending, with a fresh budget and no expiry; with a key but no key slot, it waits for the key.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
    run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0, expires_at = NULL
WHERE id = :id

-- name: revive
-- A finished job becomes pending, with a fresh budget and no expiry; with a key, it waits for the key.
INSERT INTO windlass_jobs (
    id, queue, type, payload, status, reason, sort_priority, rank, run_at, attempt, max_attempts, rescues, suspicions,
    requeues, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, tenant_queue
)
SELECT id, queue, type, payload, CASE WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
    CASE WHEN concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END, sort_priority, :now, :now,
    attempt, max_attempts, rescues, suspicions, requeues, snoozes,
    created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, error, :attempts,
    tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = queue AND fair)
FROM windlass_history WHERE id = :id

-- name: failed_parents
-- Parents of a cancelled job that ended without completing, or are dropped.
SELECT dependency.parent FROM windlass_history AS child, json_each(child.parents) AS parent
CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = parent.value AND dependency.child = child.id
WHERE child.id = :id AND NOT EXISTS (SELECT 1 FROM windlass_jobs AS live WHERE live.id = dependency.parent)

-- name: run_now
-- A delayed job becomes pending, with its budget and expiry; with a key but no key slot, it waits for the key.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
    run_at = :now, rank = :now, updated_at = :now
WHERE id = :id AND status IN ('scheduled', 'failed')

-- name: changeable
-- A finished job has neither rank nor key slot.
SELECT status, reason, run_at, rank, queue, idempotency_key, concurrency_key, key_slot FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, reason, run_at, 0, queue, idempotency_key, concurrency_key, NULL FROM windlass_history WHERE id = :id

-- name: repair
-- Another payload for a dead job. Its times do not change, because retention counts from its end.
UPDATE windlass_history SET payload = :payload WHERE id = :id

-- name: change
-- A job that gets another time, queue or priority loses what ageing added; one that gets a time loses its delay after parents.
UPDATE windlass_jobs
SET status = :status, reason = :reason, run_at = :run_at, rank = :rank, updated_at = :now,
    sort_priority = coalesce(
        :sort_priority,
        CASE WHEN :status = 'scheduled' OR queue <> :queue THEN sort_priority + aged_by ELSE sort_priority END
    ),
    aged_by = CASE WHEN :sort_priority IS NOT NULL OR :status = 'scheduled' OR queue <> :queue THEN 0 ELSE aged_by END,
    payload = coalesce(:payload, payload), queue = :queue, key_slot = :key_slot,
    delay_after_parents = iif(:timed, 0, delay_after_parents),
    tenant_queue = (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
WHERE id = :id
