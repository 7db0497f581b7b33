-- A failed job need not wait for its time; its budget starts anew, and it expires no more.
UPDATE windlass_jobs
SET status = 'pending', reason = NULL, run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0,
    expires_at = NULL
WHERE id = :id
