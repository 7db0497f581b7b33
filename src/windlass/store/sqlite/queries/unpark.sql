-- Their type is known now: pending again, at their old rank.
UPDATE windlass_jobs SET status = 'pending', reason = NULL, updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_parked
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type IN (SELECT value FROM json_each(:types))
)
