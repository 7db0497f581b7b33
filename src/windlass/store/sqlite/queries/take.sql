-- Take these pending jobs for a runner, like claim.sql, when more than their place in line decided which.
UPDATE windlass_jobs
SET status = 'running', attempt = attempt + 1, worker = :runner, claim = :claim,
    claimed_at = :now, started_at = NULL, updated_at = :now, reason = NULL
WHERE id IN (SELECT value FROM json_each(:ids))
