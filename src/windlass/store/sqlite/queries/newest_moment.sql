-- The newest moment that anybody has written: ids grow with time, so the last hundred of each table are enough.
SELECT max(moment) FROM (
    SELECT max(updated_at) AS moment FROM (SELECT updated_at FROM windlass_jobs ORDER BY id DESC LIMIT 100)
    UNION ALL
    SELECT max(finished_at) FROM (SELECT finished_at FROM windlass_history ORDER BY id DESC LIMIT 100)
    UNION ALL
    SELECT max(beat_at) FROM windlass_workers
)
