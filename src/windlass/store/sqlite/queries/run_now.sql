-- A job need not wait for its time; its budget and its expiry stay as they are.
UPDATE windlass_jobs SET status = 'pending', reason = NULL, run_at = :now, rank = :now, updated_at = :now
WHERE id = :id AND status IN ('scheduled', 'failed')
