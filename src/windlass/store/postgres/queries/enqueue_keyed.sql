-- The same as `enqueue` where some have a concurrency key: those that are due go to the line of their key, and a mark says
-- so. Nothing is locked or counted here: it may be a caller's transaction, and nobody is to wait for that.
WITH place AS MATERIALIZED (
    SELECT now, floor.rank AS floor, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at,
        coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at,
        CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS lane
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass.floors AS floor ON floor.queue = queue.name
    WHERE queue.name = :queue::text AND floor.urgency = :urgency::integer AND NOT queue.closed
), own AS MATERIALIZED (
    SELECT * FROM unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
    ) AS one (id, payload, idempotency_key, concurrency_key)
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT DISTINCT :queue::text, own.concurrency_key FROM place CROSS JOIN own
    WHERE place.run_at <= now AND own.concurrency_key IS NOT NULL
)
INSERT INTO windlass.jobs (
    id, payload, idempotency_key, concurrency_key, queue, type, status, reason, urgency, rank, run_at, max_attempts,
    created_at, updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, heirs, lane
)
SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
    CASE WHEN place.run_at > now THEN 'scheduled' WHEN own.concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
    CASE WHEN place.run_at <= now AND own.concurrency_key IS NOT NULL THEN 'in line for its key' END,
    :urgency::integer, CASE WHEN place.run_at > now THEN place.run_at ELSE greatest(now, floor) END, place.run_at,
    place.max_attempts, now, now, :tenant::text, :parent::uuid, :flow::text, :parents::text, place.timeout,
    place.expires_at, :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
    :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :heirs::boolean, place.lane
FROM place CROSS JOIN own
WHERE NOT :hint::boolean OR (SELECT pg_notify(:channel::text, :queue::text)::text) IS NOT NULL
