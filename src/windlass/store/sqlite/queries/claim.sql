-- Take up to :limit pending jobs of one queue for a runner. The attempt is counted here, so that a job that kills
-- its runner has still used one up.
UPDATE windlass_jobs
SET status = 'running', attempt = attempt + 1, worker = :runner, claim = :claim,
    claimed_at = :now, started_at = NULL, updated_at = :now, reason = NULL
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    ORDER BY urgency, rank, id LIMIT :limit
)
