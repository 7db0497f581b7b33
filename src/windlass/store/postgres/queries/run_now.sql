-- Jobs need not wait for their time; their budget and their expiry stay as they are.
UPDATE windlass.jobs AS job SET status = 'pending', reason = NULL, run_at = :now, rank = :now, updated_at = :now, lane = (
    SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
)
WHERE id = ANY (:ids::uuid[]) AND status IN ('scheduled', 'failed')
RETURNING queue, urgency, rank
