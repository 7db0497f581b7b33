-- New jobs that wait for others, alike but for what is their own; which of them were not among the living yet. None at
-- all, if nobody has used the queue with this urgency, or if it is closed. None is in line or has a slot: that is for those who are due.
WITH place AS MATERIALIZED (
    SELECT now, coalesce(:run_at::bigint, now) AS run_at, coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at,
        CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS lane
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass.floors AS floor ON floor.queue = queue.name
    WHERE queue.name = :queue::text AND floor.urgency = :urgency::integer AND NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, parent, flow, parents, takes, waits, heirs, lag, queue, type, status,
        reason, urgency, rank, run_at, max_attempts, created_at, updated_at, tenant, timeout, expires_at, tags, meta,
        idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick, lane
    )
    SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, own.parent, own.flow, own.parents, own.takes,
        own.waits, own.heirs <> 0, CASE WHEN :run_at::bigint IS NULL THEN :delay::bigint ELSE 0 END, :queue::text, :type::text,
        'blocked', 'waits for its parent', :urgency::integer, place.run_at, place.run_at, place.max_attempts, now, now,
        :tenant::text, place.timeout, place.expires_at, :tags::text, :meta::text, :window::bigint, :key_limit::integer,
        :key_strict::boolean, :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, place.lane
    FROM place CROSS JOIN unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[],
        string_to_array(:own_parents, ',', '')::uuid[], :flows::text[], :parents::text[], :takes::text[],
        string_to_array(:waits, ',')::integer[], string_to_array(:heirs, ',')::integer[]
    ) AS own (id, payload, idempotency_key, concurrency_key, parent, flow, parents, takes, waits, heirs)
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT 1 FROM place), (SELECT array_agg(id::text) FROM new)
