-- Jobs by queue and status: each status by the index that holds just it, finished ones by their tallies.
-- What is pending or waits for its time lies above a floor: below it are only entries that nobody has cleaned yet.
SELECT place.queue, 'pending', sum(found.jobs)::bigint
FROM windlass.floors AS place CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM windlass.jobs
    WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
) AS found
GROUP BY place.queue HAVING sum(found.jobs) <> 0
UNION ALL
SELECT queue, status, count(*) FROM windlass.jobs
WHERE status IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM windlass.due_floor) GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM windlass.jobs WHERE status = 'running' GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass.jobs WHERE status = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, sum(jobs)::bigint FROM windlass.tallies GROUP BY queue, status HAVING sum(jobs) <> 0
