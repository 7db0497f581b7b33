-- Who has waited too long in a queue moves up to the next higher priority at which jobs wait, at the rank it has.
WITH levels AS (
    SELECT DISTINCT urgency FROM windlass.jobs WHERE queue = :queue::text AND status = 'pending'
), steps AS (
    SELECT urgency, lag(urgency) OVER (ORDER BY urgency) AS above FROM levels
), aged AS MATERIALIZED (
    SELECT job.id, steps.above FROM windlass.jobs AS job JOIN steps ON steps.urgency = job.urgency
    WHERE job.queue = :queue::text AND job.status = 'pending' AND steps.above IS NOT NULL
    AND job.updated_at <= :now - :ageing::bigint
    ORDER BY job.urgency, job.rank, job.id LIMIT :limit::integer FOR UPDATE OF job SKIP LOCKED
)
UPDATE windlass.jobs AS job
SET lifted = job.lifted + job.urgency - aged.above, urgency = aged.above, updated_at = :now
FROM aged WHERE job.id = aged.id RETURNING job.queue, job.urgency, job.rank
