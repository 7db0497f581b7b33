-- Change waiting jobs: each has its own place in time, the rest is the same for all. The caller has locked them. A slot that
-- is given up, and a job that comes to a line, are marked. What ageing has lifted a job by goes when it is put off, moved, or
-- given another priority; and the delay after its parents, when it gets a time.
WITH before AS MATERIALIZED (
    SELECT id, queue, concurrency_key AS key, slot FROM windlass.jobs
    WHERE id = ANY (:ids::uuid[]) AND concurrency_key IS NOT NULL
), changed AS (
    UPDATE windlass.jobs AS job
    SET status = new.status, reason = new.reason, run_at = new.run_at, rank = new.rank, updated_at = :now,
        urgency = coalesce(:urgency::integer, CASE
            WHEN new.status = 'scheduled' OR job.queue <> coalesce(:queue::text, job.queue) THEN job.urgency + job.aged_by
            ELSE job.urgency
        END),
        aged_by = CASE
            WHEN :urgency::integer IS NOT NULL OR new.status = 'scheduled' OR job.queue <> coalesce(:queue::text, job.queue)
            THEN 0 ELSE job.aged_by
        END,
        payload = coalesce(:payload::text, job.payload),
        queue = coalesce(:queue::text, job.queue), slot = new.slot,
        lag = CASE WHEN :timed::boolean THEN 0 ELSE job.lag END, lane = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues
            WHERE name = coalesce(:queue::text, job.queue)
        )
    FROM unnest(:ids::uuid[], :statuses::text[], :reasons::text[], :run_ats::bigint[], :ranks::bigint[], :slots::integer[])
        AS new (id, status, reason, run_at, rank, slot)
    WHERE job.id = new.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.id, job.queue, job.urgency, job.rank, job.status, job.concurrency_key
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT queue, key FROM before UNION SELECT queue, concurrency_key FROM changed WHERE concurrency_key IS NOT NULL
)
SELECT queue, urgency, rank, status FROM changed
