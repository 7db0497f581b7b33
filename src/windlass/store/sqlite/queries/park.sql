-- Set jobs of an unknown type aside.
UPDATE windlass_jobs SET status = 'blocked', reason = 'no worker for type', updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type = :type LIMIT :limit
)
