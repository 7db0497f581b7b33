-- The types among the next jobs of a queue.
SELECT DISTINCT type FROM (
    SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' ORDER BY urgency, rank, id LIMIT :limit
)
