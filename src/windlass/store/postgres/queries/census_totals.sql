-- The newest moment that anybody has written (ids grow with time, so the last hundred of each table are enough), and
-- how many dead letters there are, by their tallies.
SELECT (
    SELECT max(moment) FROM (
        (SELECT updated_at AS moment FROM windlass.jobs ORDER BY id DESC LIMIT 100)
        UNION ALL
        (SELECT finished_at FROM windlass.history ORDER BY id DESC LIMIT 100)
        UNION ALL
        SELECT beat_at FROM windlass.workers
    ) AS written
), (SELECT coalesce(sum(jobs), 0)::bigint FROM windlass.tallies WHERE status = 'dead')
