-- name: repair
-- Another payload for dead jobs, which the caller has locked. Their times do not change, because retention counts from
-- their end.
UPDATE windlass.history_dead SET payload = :payload WHERE id = ANY (:ids::uuid[])

-- name: change
-- Change waiting jobs, which the caller has locked: each has its own timing, the rest is the same for all. The keys of jobs
-- that give up a key slot, or wait for one from now on, become dirty. A job that is delayed, moved, or gets another
-- priority loses what ageing added; one that gets a time loses its delay after parents.
WITH before AS MATERIALIZED (
    SELECT id, queue, concurrency_key AS key, key_slot FROM windlass.jobs
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
        queue = coalesce(:queue::text, job.queue), key_slot = new.key_slot,
        delay_after_parents = CASE WHEN :timed::boolean THEN 0 ELSE job.delay_after_parents END, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues
            WHERE name = coalesce(:queue::text, job.queue)
        )
    FROM unnest(:ids::uuid[], :statuses::text[], :reasons::text[], :run_ats::bigint[], :ranks::bigint[], :key_slots::integer[])
        AS new (id, status, reason, run_at, rank, key_slot)
    WHERE job.id = new.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.id, job.queue, job.sort_priority, job.rank, job.status, job.concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT queue, key FROM before UNION SELECT queue, concurrency_key FROM changed WHERE concurrency_key IS NOT NULL
)
SELECT queue, sort_priority, rank, status FROM changed
