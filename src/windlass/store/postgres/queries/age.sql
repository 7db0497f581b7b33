-- Who has waited too long in a queue moves up to the next higher priority at which jobs wait, at the rank it has. Those
-- who wait longest are in front, so it is looked only so far behind the floor of each priority.
WITH level AS MATERIALIZED (
    SELECT floor.urgency, floor.rank FROM windlass.floors AS floor CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.urgency = floor.urgency AND job.status = 'pending' AND job.rank >= floor.rank
        LIMIT 1
    ) AS any_job WHERE floor.queue = :queue::text
), step AS MATERIALIZED (
    SELECT urgency, rank, lag(urgency) OVER (ORDER BY urgency) AS above FROM level
), aged AS MATERIALIZED (
    SELECT head.id, step.above FROM step CROSS JOIN LATERAL (
        SELECT job.id, job.updated_at FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.urgency = step.urgency AND job.status = 'pending'
        AND job.rank >= step.rank AND job.rank <= :now - :ageing::bigint
        ORDER BY job.rank, job.id LIMIT :head::integer
    ) AS head
    WHERE step.above IS NOT NULL AND head.updated_at <= :now - :ageing::bigint
    ORDER BY step.urgency LIMIT :limit::integer
), locked AS MATERIALIZED (
    SELECT job.id, aged.above FROM aged CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = aged.id AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    ) AS job
)
UPDATE windlass.jobs AS job
SET aged_by = job.aged_by + job.urgency - locked.above, urgency = locked.above, updated_at = :now
FROM locked WHERE job.id = locked.id RETURNING job.queue, job.urgency, job.rank
