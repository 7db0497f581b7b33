-- name: enqueue_dependents
-- New jobs that wait for parents, and differ only in [[id, payload, idempotency key, concurrency key, parent, flow, parents,
-- result params, number of parents, meta], …]. They get key slots only once they are due.
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, parent, flow, parents, result_params, pending_parents,
    delay_after_parents, queue, type, status, reason, sort_priority,
    rank, run_at, max_attempts, created_at, updated_at, tenant, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, tenant_queue
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
    value ->> 8, :delay_after_parents, :queue, :type, 'blocked', 'waits for its parent', :sort_priority, :rank,
    :run_at, :max_attempts, :now, :now, :tenant, :timeout, :expires_at, :tags, value ->> 9, :window, :key_limit,
    :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
FROM json_each(:batch)

-- name: parent_states
SELECT id, status, queue FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, status, queue FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))

-- name: keep_completed
SELECT name, keep_completed FROM windlass_queues WHERE name IN (SELECT value FROM json_each(:queues))

-- name: add_dependencies
INSERT INTO windlass_dependencies (parent, child, when_ended) SELECT value ->> 0, value ->> 1, value ->> 2
FROM json_each(:dependencies)

-- name: cancelled_because_of
-- Jobs that were cancelled because this one ended, directly or not, nearest first: queue, key, and {parent: status} of the
-- parents that ended without completing. Jobs cancelled for another reason are left out, with their dependents.
WITH RECURSIVE down (child, parent, depth) AS (
    SELECT dependency.child, dependency.parent, 0
    FROM windlass_dependencies AS dependency CROSS JOIN windlass_history AS cancelled ON cancelled.id = dependency.child
    WHERE dependency.parent = :id AND cancelled.status = 'cancelled'
    AND cancelled.reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled')
    UNION
    SELECT dependency.child, dependency.parent, down.depth + 1
    FROM down CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = down.child
    CROSS JOIN windlass_history AS cancelled ON cancelled.id = dependency.child
    WHERE cancelled.status = 'cancelled'
    AND cancelled.reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled')
)
SELECT child, queue, idempotency_key, (
    SELECT json_group_object(dependency.parent, coalesce(finished.status, 'dead'))
    FROM json_each(cancelled.parents) AS parent
    CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = parent.value AND dependency.child = cancelled.id
    LEFT JOIN windlass_history AS finished ON finished.id = dependency.parent
    WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs AS live WHERE live.id = dependency.parent)
)
FROM down CROSS JOIN windlass_history AS cancelled ON cancelled.id = child
ORDER BY depth, child

-- name: set_cancel_reasons
UPDATE windlass_history SET reason = each.value ->> 1
FROM json_each(:reasons) AS each WHERE windlass_history.id = each.value ->> 0

-- name: revive_waiting
-- Cancelled jobs wait for their parents again, with a fresh budget and no expiry.
INSERT INTO windlass_jobs (
    id, queue, type, payload, status, reason, sort_priority, rank, run_at, attempt, max_attempts, rescues, suspicions,
    requeues, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    result_params, parent_results, pending_parents, delay_after_parents, tenant_queue
)
SELECT id, queue, type, payload, 'blocked', 'waits for its parent', sort_priority, run_at, run_at, attempt, max_attempts, rescues,
    suspicions, requeues, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
    error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, result_params,
    parent_results, pending_parents, delay_after_parents,
    (SELECT coalesce(tenant, '') FROM windlass_queues WHERE name = queue AND fair)
FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
