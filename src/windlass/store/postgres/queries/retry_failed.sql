-- Failed jobs need not wait for their time; their budget starts anew, and they expire no more.
-- Found by their ids, not by walking through all that failed.
UPDATE windlass.jobs AS job
SET status = 'pending', reason = NULL, run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0,
    expires_at = NULL, lane = (
        SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
    )
WHERE id = ANY (:ids::uuid[]) AND status || '' = 'failed'
RETURNING queue, urgency, rank
