-- Pending jobs that no claim would find: below their floor, or in a place without one. Walks the whole index of pending
-- jobs below the floors, so it is asked rarely.
SELECT DISTINCT ON (queue, urgency) queue, urgency, rank FROM (
    SELECT low.queue, low.urgency, low.rank
    FROM windlass.floors AS floor CROSS JOIN LATERAL (
        SELECT job.queue, job.urgency, job.rank FROM windlass.jobs AS job
        WHERE job.queue = floor.queue AND job.urgency = floor.urgency AND job.status = 'pending' AND job.rank < floor.rank
        ORDER BY job.rank, job.id LIMIT 1
    ) AS low
) AS lost ORDER BY queue, urgency, rank
