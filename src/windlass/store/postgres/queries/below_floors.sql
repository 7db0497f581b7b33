-- Pending jobs that no claim would find, because they are below their floor: the lowest of each place. Walks past all
-- that is dead down there, so it is asked rarely.
SELECT low.queue, low.urgency, low.rank
FROM windlass.floors AS floor CROSS JOIN LATERAL (
    SELECT job.queue, job.urgency, job.rank FROM windlass.jobs AS job
    WHERE job.queue = floor.queue AND job.urgency = floor.urgency AND job.status = 'pending' AND job.rank < floor.rank
    ORDER BY job.rank, job.id LIMIT 1
) AS low
