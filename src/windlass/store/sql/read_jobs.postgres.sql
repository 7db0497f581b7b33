-- name: held
SELECT id::text, attempt, queue FROM windlass.jobs WHERE worker = :runner::text AND status = 'running'

-- name: counts
-- Jobs by queue and status: each status by its partial index, finished ones by history_counts. Pending and scheduled
-- jobs are above the watermarks; below are only dead entries.
SELECT place.queue, 'pending', sum(found.jobs)::bigint
FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM windlass.jobs
    WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
) AS found
GROUP BY place.queue HAVING sum(found.jobs) <> 0
UNION ALL
SELECT queue, status, count(*) FROM windlass.jobs
WHERE status IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM windlass.due_watermark) GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM windlass.jobs WHERE status = 'running' GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass.jobs WHERE status = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, sum(jobs)::bigint FROM windlass.history_counts GROUP BY queue, status HAVING sum(jobs) <> 0
