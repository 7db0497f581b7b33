-- The key of a pending job has no tokens for it until then. It keeps its slot and its rank; no attempt is counted.
UPDATE windlass_jobs SET status = 'scheduled', reason = 'rate limit of its key', run_at = :until, updated_at = :now
WHERE id = :id
