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
CROSS JOIN windlass.queues AS queue JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name
CROSS JOIN unnest(
    string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[],
    string_to_array(:run_ats, ',', '')::bigint[], string_to_array(:delays, ',')::bigint[]
) AS own (id, payload, idempotency_key, run_at, delay)
CROSS JOIN LATERAL (SELECT coalesce(own.run_at, now + own.delay) AS run_at) AS due
WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT pg_notify(:channel::text, :queue::text)::text) IS NOT NULL)
