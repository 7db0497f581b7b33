-- The keys of those who are about to be parked.
SELECT DISTINCT concurrency_key FROM (
    SELECT concurrency_key FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type = :type
    ORDER BY urgency, rank, id LIMIT :limit
) WHERE concurrency_key IS NOT NULL
