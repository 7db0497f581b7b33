-- New jobs with parents; returns those that were not live. Inserts none if the watermark is missing or the queue is
-- closed. None waits for a key or has a slot before it is due.
WITH place AS MATERIALIZED (
    SELECT now, coalesce(:run_at::bigint, now) AS run_at, coalesce(:max_attempts::integer, queue.max_attempts) AS max_attempts,
        coalesce(:timeout::bigint, queue.timeout) AS timeout,
        coalesce(:expires_at::bigint, now + :expires::bigint) AS expires_at,
        CASE WHEN queue.fair THEN coalesce(:tenant::text, '') END AS tenant_queue
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN windlass.queues AS queue JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name
    WHERE queue.name = :queue::text AND watermark.sort_priority = :sort_priority::integer AND NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, parent, flow, parents, result_params, pending_parents, has_dependents, delay_after_parents, queue, type, status,
        reason, sort_priority, rank, run_at, max_attempts, created_at, updated_at, tenant, timeout, expires_at, tags, meta,
        idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick, tenant_queue
    )
    SELECT own.id, own.payload, own.idempotency_key, own.concurrency_key, own.parent, own.flow, own.parents, own.result_params,
        own.pending_parents, own.has_dependents <> 0, CASE WHEN :run_at::bigint IS NULL THEN :delay::bigint ELSE 0 END, :queue::text, :type::text,
        'blocked', 'waits for its parent', :sort_priority::integer, place.run_at, place.run_at, place.max_attempts, now, now,
        :tenant::text, place.timeout, place.expires_at, :tags::text, :meta::text, :window::bigint, :key_limit::integer,
        :key_strict::boolean, :key_rate::text, :rate_cost::integer, :schedule::text, :tick::bigint, place.tenant_queue
    FROM place CROSS JOIN unnest(
        string_to_array(:ids, ',')::uuid[], :payloads::text[], :keys::text[], :concurrency_keys::text[],
        string_to_array(:own_parents, ',', '')::uuid[], :flows::text[], :parents::text[], :result_params::text[],
        string_to_array(:pending_parents, ',')::integer[], string_to_array(:has_dependents, ',')::integer[]
    ) AS own (id, payload, idempotency_key, concurrency_key, parent, flow, parents, result_params, pending_parents, has_dependents)
    ON CONFLICT (id) DO NOTHING
    RETURNING id
)
SELECT EXISTS (SELECT 1 FROM place), (SELECT array_agg(id::text) FROM new)
