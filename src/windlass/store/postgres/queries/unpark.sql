-- Their types are known now: pending again, at their old rank. What another beat frees at this moment is left to it.
WITH known AS (
    SELECT id FROM windlass.jobs
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type = ANY(:types::text[])
    LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE windlass.jobs AS job SET status = 'pending', reason = NULL, updated_at = :now
FROM known WHERE job.id = known.id RETURNING job.queue, job.urgency, job.rank
