-- A job need not wait for its time; its budget and its expiry stay as they are. With a key and no slot it goes to the line.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
    run_at = :now, rank = :now, updated_at = :now
WHERE id = :id AND status IN ('scheduled', 'failed')
