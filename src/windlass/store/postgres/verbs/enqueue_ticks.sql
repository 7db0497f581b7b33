-- The same as `enqueue_known` for jobs of ticks, which all differ, so each is given in full. Returns one that was not
-- stored, because its queue is closed or its watermark is missing: then the transaction must be rolled back.
WITH own AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:jobs::json) AS one (
        id uuid, payload text, idempotency_key text, concurrency_key text, queue text, type text, sort_priority integer,
        run_at bigint, max_attempts integer, tenant text, flow text, timeout bigint, expires bigint, expires_at bigint,
        tags text, meta text, "window" bigint, key_limit integer, key_strict boolean, key_rate text, rate_cost integer,
        schedule text, tick bigint
    )
), placed AS MATERIALIZED (
    SELECT own.*, now, own.run_at > now AS is_scheduled, greatest(now, watermark.rank) AS watermark,
        coalesce(own.max_attempts, queue.max_attempts) AS attempts, coalesce(own.timeout, queue.timeout) AS longest,
        CASE WHEN queue.fair THEN coalesce(own.tenant, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN own JOIN windlass.queues AS queue ON queue.name = own.queue
    JOIN windlass.watermarks AS watermark ON watermark.queue = own.queue AND watermark.sort_priority = own.sort_priority
    WHERE NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, queue, type, status, reason, sort_priority, rank, run_at, max_attempts,
        created_at, updated_at, tenant, flow, timeout, expires_at, tags, meta, idempotency_window, key_limit, key_strict,
        key_rate, rate_cost, schedule, tick, tenant_queue
    )
    SELECT id, payload, idempotency_key, concurrency_key, queue, type,
        CASE WHEN is_scheduled THEN 'scheduled' WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN NOT is_scheduled AND concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END, sort_priority,
        CASE WHEN is_scheduled THEN run_at ELSE watermark END, run_at, attempts, now, now, tenant, flow, longest,
        coalesce(expires_at, now + expires), tags, meta, "window", key_limit, key_strict, key_rate, rate_cost, schedule,
        tick, tenant_queue
    FROM placed
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, concurrency_key, status
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM new WHERE status = 'blocked'
)
SELECT (SELECT own.id::text FROM own WHERE own.id NOT IN (SELECT placed.id FROM placed) LIMIT 1),
    (SELECT array_agg(id::text) FROM new),
    (
        SELECT count(pg_notify(:channel::text, due.queue)::text)
        FROM (SELECT DISTINCT queue FROM new WHERE status <> 'scheduled') AS due WHERE :hint::boolean
    )
