-- The newest moment in the store (ids grow with time, so the last hundred of each table are enough), and the number
-- of dead jobs.
SELECT (
    SELECT max(moment) FROM (
        (SELECT updated_at AS moment FROM windlass.jobs ORDER BY id DESC LIMIT 100)
        UNION ALL
        (SELECT finished_at FROM windlass.history ORDER BY id DESC LIMIT 100)
        UNION ALL
        SELECT beat_at FROM windlass.workers
    ) AS written
), (SELECT coalesce(sum(jobs), 0)::bigint FROM windlass.history_counts WHERE status = 'dead')
