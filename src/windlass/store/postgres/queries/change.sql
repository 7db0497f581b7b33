-- Change waiting jobs: each has its own place in time, the rest is the same for all. The caller has locked them.
UPDATE windlass.jobs AS job
SET status = new.status, reason = new.reason, run_at = new.run_at, rank = new.rank, updated_at = :now,
    urgency = coalesce(:urgency::integer, job.urgency), payload = coalesce(:payload::text, job.payload),
    queue = coalesce(:queue::text, job.queue), lane = (
        SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues AS new
        WHERE new.name = coalesce(:queue::text, job.queue)
    )
FROM unnest(:ids::uuid[], :statuses::text[], :reasons::text[], :run_ats::bigint[], :ranks::bigint[])
    AS new (id, status, reason, run_at, rank)
WHERE job.id = new.id AND job.id = ANY (:ids::uuid[])
RETURNING job.queue, job.urgency, job.rank, job.status
