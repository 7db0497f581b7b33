-- New jobs that differ only in id, payload and keys; the queue gives what they leave open. None at all, if nobody has
-- used the queue with this urgency (then the place must be made first), or if it is closed. The rank is never in the past, nor below the
-- floor, should the clock have been set back: see core/admission.py. A plain insert, because one job at a time it is
-- half as fast with anything round it; the hint goes along as a condition that is always true.
INSERT INTO windlass.jobs (
    id, payload, idempotency_key, concurrency_key, queue, type, status, urgency, rank, run_at, max_attempts, created_at,
    updated_at, tenant, parent, flow, parents, timeout, expires_at, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, heirs, lane
)
SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, :queue::text, :type::text,
    CASE WHEN run_at > now THEN 'scheduled' ELSE 'pending' END, :urgency::integer,
    CASE WHEN run_at > now THEN run_at ELSE greatest(now, floor.rank) END, run_at,
    coalesce(:max_attempts::integer, queue.max_attempts), now, now, :tenant::text, :parent::uuid, :flow::text,
    :parents::text, coalesce(:timeout::bigint, queue.timeout), coalesce(:expires_at::bigint, now + :expires::bigint),
    :tags::text, :meta::text, :window::bigint, :key_limit::integer, :key_strict::boolean,
    :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, :heirs::boolean, CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END
FROM (SELECT now, coalesce(:run_at::bigint, now + :delay::bigint) AS run_at FROM (SELECT :now AS now) AS clock OFFSET 0)
    AS time
CROSS JOIN windlass.queues AS queue JOIN windlass.floors AS floor ON floor.queue = queue.name
CROSS JOIN unnest(
    string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[]
) AS own (id, payload, idempotency_key, concurrency_key)
WHERE queue.name = :queue::text AND floor.urgency = :urgency::integer AND NOT queue.closed
AND (NOT :hint::boolean OR (SELECT pg_notify(:channel::text, :queue::text)::text) IS NOT NULL)
