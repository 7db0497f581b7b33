-- name: existing_ids
SELECT id::text FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.history WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

-- name: enqueue_known
-- The same for ids that may be known: returns those that were not live.
WITH target AS MATERIALIZED (
    SELECT now, watermark.rank AS watermark, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at,
        coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
    WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, queue, type, status, reason, sort_priority, rank, run_at, max_attempts,
        created_at, updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, has_dependents, tenant_queue
    )
    SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
        CASE WHEN target.run_at > now THEN 'scheduled' WHEN own.concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN target.run_at <= now AND own.concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END,
        :sort_priority::integer,
        CASE WHEN target.run_at > now THEN target.run_at ELSE greatest(now, watermark) END, target.run_at, target.max_attempts,
        now, now, :tenant::text, :parent::uuid, :flow::text, :parents::text, target.timeout, target.expires_at,
        :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
        :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :has_dependents::boolean, target.tenant_queue
    FROM target CROSS JOIN unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
    ) AS own (id, payload, idempotency_key, concurrency_key)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT :queue::text, new.concurrency_key FROM new CROSS JOIN target
    WHERE new.concurrency_key IS NOT NULL AND target.run_at <= now
)
SELECT EXISTS (SELECT 1 FROM target), (SELECT array_agg(id::text) FROM new),
    (SELECT :notify(:channel::text, :queue::text) FROM target WHERE :hint::boolean AND run_at <= now)::text

-- name: enqueue_rows
-- The same as `enqueue_known` and `enqueue_dependents` for jobs that all differ, so each is given in full: those of
-- ticks, and of bulks of many kinds. Returns one that was not stored, because its queue is closed or its watermark is
-- missing: then the transaction must be rolled back.
WITH own AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:jobs::text::json) AS one (
        id uuid, payload text, idempotency_key text, concurrency_key text, queue text, type text, sort_priority integer,
        run_at bigint, delay bigint, max_attempts integer, tenant text, parent uuid, flow text, parents text,
        result_params text, pending_parents integer, has_dependents boolean, timeout bigint, expires bigint,
        expires_at bigint, tags text, meta text, "window" bigint, key_limit integer, key_strict boolean, key_rate text,
        rate_cost integer, schedule text, tick bigint
    )
), filled AS MATERIALIZED (
    SELECT own.*, now, due.moment, own.parents IS NULL AND due.moment > now AS is_scheduled,
        greatest(now, watermark.rank) AS watermark, coalesce(own.max_attempts, queue.max_attempts) AS attempts,
        coalesce(own.timeout, queue.timeout) AS longest, CASE WHEN queue.fair THEN coalesce(own.tenant, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN own JOIN windlass.queues AS queue ON queue.name = own.queue
    JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = own.queue AND watermark.sort_priority = own.sort_priority
    CROSS JOIN LATERAL (
        SELECT coalesce(own.run_at, CASE WHEN own.parents IS NULL THEN now + own.delay ELSE now END) AS moment
    ) AS due
    WHERE NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, queue, type, status, reason, sort_priority, rank, run_at, max_attempts,
        created_at, updated_at, tenant, parent, flow, parents, result_params, pending_parents, has_dependents,
        delay_after_parents, timeout, expires_at, tags, meta, idempotency_window, key_limit, key_strict, key_rate,
        rate_cost, schedule, tick, tenant_queue
    )
    SELECT id, payload, idempotency_key, concurrency_key, queue, type,
        CASE
            WHEN parents IS NOT NULL THEN 'blocked'
            WHEN is_scheduled THEN 'scheduled'
            WHEN concurrency_key IS NULL THEN 'pending'
            ELSE 'blocked'
        END,
        CASE
            WHEN parents IS NOT NULL THEN 'waits for its parent'
            WHEN NOT is_scheduled AND concurrency_key IS NOT NULL THEN 'waits for its concurrency key'
        END,
        sort_priority, CASE WHEN is_scheduled OR parents IS NOT NULL THEN moment ELSE watermark END, moment, attempts, now,
        now, tenant, parent, flow, parents, result_params, pending_parents, has_dependents,
        CASE WHEN parents IS NOT NULL AND run_at IS NULL THEN delay ELSE 0 END, longest,
        coalesce(expires_at, now + expires), tags, meta, "window", key_limit, key_strict, key_rate, rate_cost, schedule,
        tick, tenant_queue
    FROM filled
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, concurrency_key, status, pending_parents
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM new WHERE status = 'blocked' AND pending_parents = 0
)
SELECT (SELECT own.id::text FROM own WHERE own.id NOT IN (SELECT filled.id FROM filled) LIMIT 1),
    (SELECT array_agg(id::text) FROM new),
    (
        SELECT count(:notify(:channel::text, due.queue)::text)
        FROM (SELECT DISTINCT queue FROM new WHERE status <> 'scheduled' AND pending_parents = 0) AS due
        WHERE :hint::boolean
    )

-- name: enqueue_dependents
-- New jobs with parents; returns those that were not live. Inserts none if the watermark is missing or the queue is
-- closed. None waits for a key or has a key slot before it is due.
WITH target AS MATERIALIZED (
    SELECT now, coalesce(:run_at::bigint, now) AS run_at, coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at,
        CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
    WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, parent, flow, parents, result_params, pending_parents, has_dependents, delay_after_parents, queue, type, status,
        reason, sort_priority, rank, run_at, max_attempts, created_at, updated_at, tenant, timeout, expires_at, tags, meta,
        idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick, tenant_queue
    )
    SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, own.parent, own.flow, own.parents, own.result_params,
        own.pending_parents, own.has_dependents <> 0, CASE WHEN :run_at::bigint IS NULL THEN :delay::bigint ELSE 0 END, :queue::text, :type::text,
        'blocked', 'waits for its parent', :sort_priority::integer, target.run_at, target.run_at, target.max_attempts, now, now,
        :tenant::text, target.timeout, target.expires_at, :tags::text, own.meta, :window::bigint, :key_limit::integer,
        :key_strict::boolean, :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, target.tenant_queue
    FROM target CROSS JOIN unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[],
        string_to_array(:own_parents, ',', '')::uuid[], :flows::text[], :parents::text[], :result_params::text[],
        string_to_array(:pending_parents, ',')::integer[], string_to_array(:has_dependents, ',')::integer[], :metas::text[]
    ) AS own (
        id, payload, idempotency_key, concurrency_key, parent, flow, parents, result_params, pending_parents, has_dependents, meta
    )
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT 1 FROM target), (SELECT array_agg(id::text) FROM new)

-- name: ended_ids
-- Which of these ids belong to ended jobs. A later statement than the insert, which conflicts with live ones, so that
-- it sees a job that ended meanwhile.
SELECT id::text FROM windlass.history WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text FROM windlass.tombstones WHERE id = ANY(:ids::uuid[]) AND until > :now

-- name: drop_new
-- Delete jobs that were inserted in this transaction, and had ended before.
DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[])

-- name: enqueue_at_times
-- The same as `enqueue` for jobs without concurrency keys that each have their own time: a moment, or a delay.
INSERT INTO windlass.jobs (
    id, payload, idempotency_key, queue, type, status, sort_priority, rank, run_at, max_attempts, created_at,
    updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, has_dependents, tenant_queue
)
SELECT own.id, own.payload, own.idempotency_key, :queue::text, :type::text,
    CASE WHEN due.run_at > now THEN 'scheduled' ELSE 'pending' END, :sort_priority::integer,
    CASE WHEN due.run_at > now THEN due.run_at ELSE greatest(now, watermark.rank) END, due.run_at,
    coalesce(:max_attempts::integer, queue.max_attempts), now, now, :tenant::text, :parent::uuid, :flow::text,
    :parents::text, coalesce(:timeout::bigint, queue.timeout), coalesce(:expires_at::bigint, now + :expires::bigint),
    :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
    :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :has_dependents::boolean, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END
FROM (SELECT :now AS now OFFSET 0) AS clock
CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
CROSS JOIN unnest(
    string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[],
    string_to_array(:run_ats, ',', '')::bigint[], string_to_array(:delays, ',')::bigint[]
) AS own (id, payload, idempotency_key, run_at, delay)
CROSS JOIN LATERAL (SELECT coalesce(own.run_at, now + own.delay) AS run_at) AS due
WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT :notify(:channel::text, :queue::text)::text) IS NOT NULL)

-- name: enqueue
-- New jobs that differ only in id, payload and keys; the queue gives the defaults. Inserts none if the watermark is
-- missing or the queue is closed. The rank is never in the past, nor below the watermark, should the clock have been
-- set back (core/jobs/admission.py). A plain INSERT, because for one job it is twice as fast as one inside a CTE; the hint
-- is a condition that is always true.
INSERT INTO windlass.jobs (
    id, payload, idempotency_key, concurrency_key, queue, type, status, sort_priority, rank, run_at, max_attempts, created_at,
    updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, has_dependents, tenant_queue
)
SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
    CASE WHEN run_at > now THEN 'scheduled' ELSE 'pending' END, :sort_priority::integer,
    CASE WHEN run_at > now THEN run_at ELSE greatest(now, watermark.rank) END, run_at,
    coalesce(:max_attempts::integer, queue.max_attempts), now, now, :tenant::text, :parent::uuid, :flow::text,
    :parents::text, coalesce(:timeout::bigint, queue.timeout), coalesce(:expires_at::bigint, now + :expires::bigint),
    :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
    :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :has_dependents::boolean, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END
FROM (SELECT now, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at FROM (SELECT :now AS now) AS clock OFFSET 0)
    AS time
CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
CROSS JOIN unnest(
    string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
) AS own (id, payload, idempotency_key, concurrency_key)
WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT :notify(:channel::text, :queue::text)::text) IS NOT NULL)

-- name: enqueue_one
-- The same as `enqueue` for one job without keys, parents or schedule.
INSERT INTO windlass.jobs (
    id, payload, queue, type, status, sort_priority, rank, run_at, max_attempts, created_at, updated_at, tenant, parent, flow,
    timeout, expires_at, tags, meta, tenant_queue
)
SELECT :id::uuid, :payload::text, :queue::text, :type::text,
    CASE WHEN run_at > now THEN 'scheduled' ELSE 'pending' END, :sort_priority::integer,
    CASE WHEN run_at > now THEN run_at ELSE greatest(now, watermark.rank) END, run_at,
    coalesce(:max_attempts::integer, queue.max_attempts), now, now, :tenant::text, :parent::uuid, :flow::text,
    coalesce(:timeout::bigint, queue.timeout), coalesce(:expires_at::bigint, now + :expires::bigint),
    :tags::text, :meta::text, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END
FROM (SELECT now, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at FROM (SELECT :now AS now) AS clock OFFSET 0)
    AS time
CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT :notify(:channel::text, :queue::text)::text) IS NOT NULL)

-- name: enqueue_keyed
-- The same as `enqueue` for jobs with concurrency keys: due ones wait for their key, which becomes dirty. Nothing is
-- locked or counted, because it may run in a caller's transaction.
WITH target AS MATERIALIZED (
    SELECT now, watermark.rank AS watermark, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at,
        coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at,
        CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark ON watermark.queue = queue.name
    WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
), own AS MATERIALIZED (
    SELECT * FROM unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
    ) AS one (id, payload, idempotency_key, concurrency_key)
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT :queue::text, own.concurrency_key FROM target CROSS JOIN own
    WHERE target.run_at <= now AND own.concurrency_key IS NOT NULL
)
INSERT INTO windlass.jobs (
    id, payload, idempotency_key, concurrency_key, queue, type, status, reason, sort_priority, rank, run_at, max_attempts,
    created_at, updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, has_dependents, tenant_queue
)
SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
    CASE WHEN target.run_at > now THEN 'scheduled' WHEN own.concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
    CASE WHEN target.run_at <= now AND own.concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END,
    :sort_priority::integer, CASE WHEN target.run_at > now THEN target.run_at ELSE greatest(now, watermark) END, target.run_at,
    target.max_attempts, now, now, :tenant::text, :parent::uuid, :flow::text, :parents::text, target.timeout,
    target.expires_at, :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
    :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :has_dependents::boolean, target.tenant_queue
FROM target CROSS JOIN own
WHERE NOT :hint::boolean OR (SELECT :notify(:channel::text, :queue::text)::text) IS NOT NULL
