-- name: held
SELECT id::text, attempt, queue, claim FROM windlass.held_jobs WHERE runner = :runner::text

-- name: counts
-- Jobs by queue and status: each status by its partial index, finished ones by history_counts. Pending and scheduled
-- jobs are above the watermarks; below are only dead entries. Pending ones are counted with the running ones among
-- them, which the index does not tell apart, less those.
WITH running AS MATERIALIZED (
    SELECT queue, sort_priority, rank /*yugabyte , bucket */ FROM windlass.held_jobs WHERE runner > ''
)
SELECT place.queue, 'pending', sum(found.jobs)::bigint
FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT (
        SELECT count(*) FROM windlass.jobs
        WHERE queue = place.queue AND sort_priority = place.sort_priority /*yugabyte AND bucket = place.bucket */
        AND rank >= place.rank AND stage = 'pending'
    ) - (
        SELECT count(*) FROM running
        WHERE queue = place.queue AND sort_priority = place.sort_priority /*yugabyte AND bucket = place.bucket */
        AND rank >= place.rank
    ) AS jobs OFFSET 0
) AS found
GROUP BY place.queue HAVING sum(found.jobs) <> 0
UNION ALL
SELECT queue, status, count(*) FROM windlass.jobs
WHERE stage IN ('scheduled', 'failed') AND run_at >= (SELECT min(due) FROM windlass.due_watermark) GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM running GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass.jobs WHERE stage = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, sum(jobs)::bigint FROM windlass.history_counts GROUP BY queue, status HAVING sum(jobs) <> 0
