-- replaces: census_totals
-- The newest moment in the store, by the last hundred ids of each bucket, and the number of dead jobs.
SELECT (
    SELECT max(moment) FROM (
        SELECT job.moment FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
            SELECT updated_at AS moment FROM windlass.jobs WHERE bucket = part.bucket ORDER BY id DESC LIMIT 100
        ) AS job
        UNION ALL
        SELECT job.moment FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
            SELECT finished_at AS moment FROM windlass.history WHERE bucket = part.bucket ORDER BY id DESC LIMIT 100
        ) AS job
        UNION ALL
        SELECT beat_at FROM windlass.workers
    ) AS written
), (SELECT coalesce(sum(jobs), 0)::bigint FROM windlass.history_counts WHERE status = 'dead')

-- replaces: census_delayed
-- Delayed jobs by queue, type, and whether they are due, among the first :limit of all buckets.
SELECT queue, type, run_at <= :now, count(*) FROM (
    SELECT head.queue, head.type, head.run_at FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT queue, type, run_at, id FROM windlass.jobs
        WHERE bucket = part.bucket AND stage IN ('scheduled', 'failed') AND run_at >= part.due
        ORDER BY run_at, id LIMIT :limit
    ) AS head ORDER BY head.run_at, head.id LIMIT :limit
) AS next
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
