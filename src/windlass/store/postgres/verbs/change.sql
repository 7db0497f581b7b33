-- name: run_now
-- Jobs become pending, or wait for their key, before their time; budget and expiry stay. By ids, not by a scan of all
-- waiting jobs.
WITH ready AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'waits for its concurrency key' END,
        run_at = :now, rank = :now, updated_at = :now, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' IN ('scheduled', 'failed')
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM ready WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM ready

-- name: change
-- Change waiting jobs, locked by the caller: each has its own timing, the rest is the same for all. Keys of freed
-- slots and of newly waiting jobs become dirty. Ageing is reset when a job is delayed, moved, or given another
-- priority; its delay after its parents when it gets a time.
WITH before AS MATERIALIZED (
    SELECT id, queue, concurrency_key AS key, slot FROM windlass.jobs
    WHERE id = ANY (:ids::uuid[]) AND concurrency_key IS NOT NULL
), changed AS (
    UPDATE windlass.jobs AS job
    SET status = new.status, reason = new.reason, run_at = new.run_at, rank = new.rank, updated_at = :now,
        sort_priority = coalesce(:sort_priority::integer, CASE
            WHEN new.status = 'scheduled' OR job.queue <> coalesce(:queue::text, job.queue) THEN job.sort_priority + job.aged_by
            ELSE job.sort_priority
        END),
        aged_by = CASE
            WHEN :sort_priority::integer IS NOT NULL OR new.status = 'scheduled' OR job.queue <> coalesce(:queue::text, job.queue)
            THEN 0 ELSE job.aged_by
        END,
        payload = coalesce(:payload::text, job.payload),
        queue = coalesce(:queue::text, job.queue), slot = new.slot,
        delay_after_parents = CASE WHEN :timed::boolean THEN 0 ELSE job.delay_after_parents END, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues
            WHERE name = coalesce(:queue::text, job.queue)
        )
    FROM unnest(:ids::uuid[], :statuses::text[], :reasons::text[], :run_ats::bigint[], :ranks::bigint[], :slots::integer[])
        AS new (id, status, reason, run_at, rank, slot)
    WHERE job.id = new.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.id, job.queue, job.sort_priority, job.rank, job.status, job.concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT queue, key FROM before UNION SELECT queue, concurrency_key FROM changed WHERE concurrency_key IS NOT NULL
)
SELECT queue, sort_priority, rank, status FROM changed
