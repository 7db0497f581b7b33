-- The same as `enqueue_again` for jobs of ticks: no two are alike, since each has its schedule and its tick, so each
-- says all of itself. Some in queues that are closed, or at places that nobody has made, are not stored: one of them
-- is named, and the transaction must not stand. Which of the others are new here, as far as living jobs go.
WITH own AS MATERIALIZED (
    SELECT * FROM json_to_recordset(:jobs::json) AS one (
        id uuid, payload text, idempotency_key text, concurrency_key text, queue text, type text, urgency integer,
        run_at bigint, max_attempts integer, tenant text, flow text, timeout bigint, expires bigint, expires_at bigint,
        tags text, meta text, "window" bigint, key_limit integer, key_strict boolean, key_rate text, rate_cost integer,
        schedule text, tick bigint
    )
), placed AS MATERIALIZED (
    SELECT own.*, now, own.run_at > now AS waits, greatest(now, floor.rank) AS floor,
        coalesce(own.max_attempts, queue.max_attempts) AS attempts, coalesce(own.timeout, queue.timeout) AS longest,
        CASE WHEN queue.fair THEN coalesce(own.tenant, '') END AS lane
    FROM (SELECT :now AS now) AS clock
    CROSS JOIN own JOIN windlass.queues AS queue ON queue.name = own.queue
    JOIN windlass.floors AS floor ON floor.queue = own.queue AND floor.urgency = own.urgency
    WHERE NOT queue.closed
), new AS (
    INSERT INTO windlass.jobs (
        id, payload, idempotency_key, concurrency_key, queue, type, status, reason, urgency, rank, run_at, max_attempts,
        created_at, updated_at, tenant, flow, timeout, expires_at, tags, meta, idempotency_window, key_limit, key_strict,
        key_rate, rate_cost, schedule, tick, lane
    )
    SELECT id, payload, idempotency_key, concurrency_key, queue, type,
        CASE WHEN waits THEN 'scheduled' WHEN concurrency_key IS NULL THEN 'pending' ELSE 'blocked' END,
        CASE WHEN NOT waits AND concurrency_key IS NOT NULL THEN 'in line for its key' END, urgency,
        CASE WHEN waits THEN run_at ELSE floor END, run_at, attempts, now, now, tenant, flow, longest,
        coalesce(expires_at, now + expires), tags, meta, "window", key_limit, key_strict, key_rate, rate_cost, schedule,
        tick, lane
    FROM placed
    ON CONFLICT (id) DO NOTHING
    RETURNING id, queue, concurrency_key, status
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT DISTINCT queue, concurrency_key FROM new WHERE status = 'blocked'
)
SELECT (SELECT own.id::text FROM own WHERE own.id NOT IN (SELECT placed.id FROM placed) LIMIT 1),
    (SELECT array_agg(id::text) FROM new),
    (
        SELECT count(pg_notify(:channel::text, due.queue)::text)
        FROM (SELECT DISTINCT queue FROM new WHERE status <> 'scheduled') AS due WHERE :hint::boolean
    )
