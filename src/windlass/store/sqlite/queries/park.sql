-- Set jobs of an unknown type aside. Their slots are free, but for strict order.
UPDATE windlass_jobs SET status = 'blocked', reason = 'no worker for type', updated_at = :now,
    slot = CASE WHEN key_strict THEN slot END
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type = :type
    ORDER BY urgency, rank, id LIMIT :limit
)
