-- The same for ids that may be known: returns those that were not live.
WITH place AS MATERIALIZED (
    SELECT now, watermark.rank AS watermark, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at,
        coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name
    WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, queue, type, status, reason, sort_priority, rank, run_at, max_attempts,
        created_at, updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, has_dependents, tenant_queue
    )
    SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
        CASE WHEN place.run_at > now THEN 'scheduled' WHEN own.concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN place.run_at <= now AND own.concurrency_key IS NOT NULL THEN 'waits for its concurrency key' END,
        :sort_priority::integer,
        CASE WHEN place.run_at > now THEN place.run_at ELSE greatest(now, watermark) END, place.run_at, place.max_attempts,
        now, now, :tenant::text, :parent::uuid, :flow::text, :parents::text, place.timeout, place.expires_at,
        :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
        :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :has_dependents::boolean, place.tenant_queue
    FROM place CROSS JOIN unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
    ) AS own (id, payload, idempotency_key, concurrency_key)
    ON CONFLICT (id) DO NOTHING
    RETURNING id, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT :queue::text, new.concurrency_key FROM new CROSS JOIN place
    WHERE new.concurrency_key IS NOT NULL AND place.run_at <= now
)
SELECT EXISTS (SELECT 1 FROM place), (SELECT array_agg(id::text) FROM new),
    (SELECT pg_notify(:channel::text, :queue::text) FROM place WHERE :hint::boolean AND run_at <= now)::text
