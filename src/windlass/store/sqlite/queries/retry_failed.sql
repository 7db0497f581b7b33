-- A failed job need not wait for its time; its budget starts anew, and it expires no more. With a key and no slot it goes
-- to the line.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
    run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0, expires_at = NULL
WHERE id = :id
