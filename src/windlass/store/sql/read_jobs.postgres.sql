-- name: held
SELECT id::text, attempt, queue, claim FROM windlass.held_jobs WHERE runner = :runner::text

-- name: counts
-- Jobs by queue and status: live ones by the partial index of each status, finished ones by history_counts. Pending and
-- scheduled jobs are counted from the watermarks on, below which there are only dead entries. The index of pending jobs
-- has running ones too: both are counted, and the running ones subtracted.
WITH running AS MATERIALIZED (
    SELECT queue, sort_priority, rank /*yugabyte , bucket */ FROM windlass.held_jobs WHERE runner > ''
)
SELECT watermark.queue, 'pending', sum(found.jobs)::bigint
FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
    SELECT (
        SELECT count(*) FROM windlass.jobs
        WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
        AND rank >= watermark.rank AND stage = 'pending'
    ) - (
        SELECT count(*) FROM running
        WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
        AND rank >= watermark.rank
    ) AS jobs OFFSET 0
) AS found
GROUP BY watermark.queue HAVING sum(found.jobs) <> 0
UNION ALL
SELECT queue, status, count(*) FROM windlass.jobs
WHERE stage IN ('scheduled', 'failed') AND run_at >= (SELECT min(due) FROM windlass.due_watermark) GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM running GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass.jobs WHERE stage = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, sum(jobs)::bigint FROM windlass.history_counts GROUP BY queue, status HAVING sum(jobs) <> 0
