-- Jobs by queue and status. Pending ones are counted in their index, finished ones have a tally.
SELECT queue, 'pending', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' GROUP BY queue
UNION ALL
SELECT queue, status, count(*) FROM windlass_jobs WHERE status <> 'pending' GROUP BY queue, status
UNION ALL
SELECT queue, status, jobs FROM windlass_tallies WHERE jobs <> 0
