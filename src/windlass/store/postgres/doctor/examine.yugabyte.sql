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
