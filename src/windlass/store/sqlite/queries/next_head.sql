-- The next priority of a queue at which jobs are pending, and since when the first of them waits: one seek.
SELECT urgency, rank FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' AND queue = :queue AND urgency > :after ORDER BY urgency, rank LIMIT 1
