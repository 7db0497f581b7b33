-- name: enqueue
-- New jobs that differ only in [[id, payload, idempotency key, concurrency key, key slot], …]; without :has_key_slots the key slot is NULL.
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, key_slot, queue, type, status, reason, sort_priority, rank, run_at,
    max_attempts, created_at, updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta,
    idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    tenant_queue, schedule, tick
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, CASE WHEN :has_key_slots THEN value ->> 4 END, :queue,
    :type, :status, :reason, :sort_priority, :rank, :run_at, :max_attempts, :now, :now, :tenant, :parent, :flow,
    :parents, :timeout, :expires_at, :tags, :meta, :window, :key_limit, :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair), :schedule, :tick
FROM json_each(:batch)

-- name: enqueue_unkeyed
-- The same for jobs without keys: each is one text, its id and its payload, because a text is taken apart in a quarter of
-- the time of an array.
INSERT INTO windlass_jobs (
    id, payload, queue, type, status, reason, sort_priority, rank, run_at, max_attempts, created_at, updated_at, tenant,
    parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    tenant_queue, schedule, tick
)
SELECT substr(value, 1, 36), substr(value, 37), :queue, :type, :status, :reason, :sort_priority, :rank, :run_at,
    :max_attempts, :now, :now, :tenant, :parent, :flow, :parents, :timeout, :expires_at, :tags, :meta, :window, :key_limit,
    :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair), :schedule, :tick
FROM json_each(:batch)

-- name: enqueue_timed
-- New jobs that each have their own time, and differ only in [[id, payload, idempotency key, concurrency key, key slot, status,
-- reason, rank, run_at, expires_at, schedule, tick], …].
INSERT INTO windlass_jobs (
    id, payload, idempotency_key, concurrency_key, key_slot, status, reason, rank, run_at, expires_at, schedule, tick,
    queue, type, sort_priority, max_attempts, created_at, updated_at, tenant, parent, flow, timeout, tags, meta,
    idempotency_window, key_limit, key_strict, key_rate, rate_cost, tenant_queue
)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, value ->> 8,
    value ->> 9, value ->> 10, value ->> 11, :queue, :type, :sort_priority, :max_attempts, :now, :now, :tenant,
    :parent, :flow, :timeout, :tags, :meta, :window, :key_limit, :key_strict, :key_rate, :rate_cost,
    (SELECT coalesce(:tenant, '') FROM windlass_queues WHERE name = :queue AND fair)
FROM json_each(:batch)

-- name: queue_states
-- For each [[queue, sort_priority], …], in this order: the queue's default attempts and timeout (NULL: a new queue), whether it is
-- closed, the last pending rank, and whether any stored id is as high as the lowest new one. If none is, which is usual because
-- ids grow with time, no new id can be known.
SELECT queue.max_attempts, queue.timeout, queue.closed,
    (
        SELECT rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE queue = wanted.value ->> 0 AND sort_priority = wanted.value ->> 1 AND status = 'pending'
        ORDER BY rank DESC LIMIT 1
    ),
    EXISTS (SELECT 1 FROM windlass_jobs WHERE id >= :lowest)
    OR EXISTS (SELECT 1 FROM windlass_history WHERE id >= :lowest)
    OR EXISTS (SELECT 1 FROM windlass_tombstones WHERE id >= :lowest)
FROM json_each(:wanted) AS wanted LEFT JOIN windlass_queues AS queue ON queue.name = wanted.value ->> 0

-- name: known_ids
-- One statement reads all three tables, so that a job that moves between them is never missed.
SELECT id FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id FROM windlass_tombstones WHERE id IN (SELECT value FROM json_each(:ids))
