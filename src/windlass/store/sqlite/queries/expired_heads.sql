-- Which of the jobs that a claim would take next have expired.
SELECT id FROM (
    SELECT id, expires_at FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    ORDER BY urgency, rank, id LIMIT :limit
) WHERE expires_at <= :now
