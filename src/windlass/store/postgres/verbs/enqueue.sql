-- New jobs that differ only in id, payload and keys; the queue gives the defaults. Inserts none if the watermark is
-- missing or the queue is closed. The rank is never in the past, nor below the watermark, should the clock have been
-- set back (core/admission.py). A plain INSERT, because for one job it is twice as fast as one inside a CTE; the hint
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
CROSS JOIN windlass.queues AS queue JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name
CROSS JOIN unnest(
    string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
) AS own (id, payload, idempotency_key, concurrency_key)
WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT pg_notify(:channel::text, :queue::text)::text) IS NOT NULL)
