-- Jobs that wait too long move up to the next higher priority at which jobs wait, with the rank they have. The oldest
-- are in front, so only the first rows behind each watermark are looked at.
WITH level AS MATERIALIZED (
    SELECT watermark.sort_priority, watermark.rank FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.sort_priority = watermark.sort_priority AND job.status = 'pending' AND job.rank >= watermark.rank
        LIMIT 1
    ) AS any_job WHERE watermark.queue = :queue::text
), step AS MATERIALIZED (
    SELECT sort_priority, rank, lag(sort_priority) OVER (ORDER BY sort_priority) AS above FROM level
), aged AS MATERIALIZED (
    SELECT head.id, step.above FROM step CROSS JOIN LATERAL (
        SELECT job.id, job.updated_at FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.sort_priority = step.sort_priority AND job.status = 'pending'
        AND job.rank >= step.rank AND job.rank <= :now - :ageing::bigint
        ORDER BY job.rank, job.id LIMIT :head::integer
    ) AS head
    WHERE step.above IS NOT NULL AND head.updated_at <= :now - :ageing::bigint
    ORDER BY step.sort_priority LIMIT :limit::integer
), locked AS MATERIALIZED (
    SELECT job.id, aged.above FROM aged CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = aged.id AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    ) AS job
)
UPDATE windlass.jobs AS job
SET aged_by = job.aged_by + job.sort_priority - locked.above, sort_priority = locked.above, updated_at = :now
FROM locked WHERE job.id = locked.id RETURNING job.queue, job.sort_priority, job.rank
