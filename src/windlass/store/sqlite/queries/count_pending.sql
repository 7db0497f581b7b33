-- Pending jobs of one queue by type, among its next :limit.
SELECT type, count(*) FROM (
    SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' ORDER BY urgency, rank, id LIMIT :limit
) GROUP BY type
