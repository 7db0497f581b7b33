-- name: census_late
-- Runners with a lapsed lease, or with jobs but no lease, and how many jobs each holds.
SELECT late.runner, (SELECT count(*) FROM windlass.held_jobs AS job WHERE job.runner = late.runner) FROM (
    SELECT runner FROM windlass.leases WHERE expires_at <= :now /*yugabyte - :skew */
    UNION
    (SELECT DISTINCT runner FROM windlass.held_jobs AS job
     WHERE NOT EXISTS (SELECT FROM windlass.leases AS lease WHERE lease.runner = job.runner) LIMIT :limit)
) AS late

-- name: census_totals
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

-- name: census_paused
SELECT name FROM windlass.queues WHERE paused AND (paused_until IS NULL OR paused_until > :now) ORDER BY name

-- name: census_pending
-- Pending jobs by queue and type, among the first :limit of each sort priority.
SELECT watermark.queue, head.type, count(*) FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
    AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
GROUP BY watermark.queue, head.type ORDER BY watermark.queue, head.type

-- name: census_delayed
-- Delayed jobs by queue, type, and whether they are due, among the first :limit.
SELECT queue, type, run_at <= :now, count(*) FROM (
    SELECT queue, type, run_at FROM windlass.jobs
    WHERE stage IN ('scheduled', 'failed') AND run_at >= (SELECT min(due) FROM windlass.due_watermark)
    ORDER BY run_at, id LIMIT :limit
) AS next
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3

-- name: census_parked
-- Parked jobs of the next type, by queue, among the first :limit.
SELECT type, queue, count(*) FROM (
    SELECT type, queue FROM windlass.jobs
    WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = (
        SELECT type FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1
    ) ORDER BY id LIMIT :limit
) AS parked
GROUP BY type, queue ORDER BY queue
