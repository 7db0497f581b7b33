-- Jobs need not wait for their time; their budget and their expiry stay as they are.
UPDATE windlass.jobs SET status = 'pending', reason = NULL, run_at = :now, rank = :now, updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status IN ('scheduled', 'failed')
RETURNING queue, urgency, rank
