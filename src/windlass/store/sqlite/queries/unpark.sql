-- Their type is known now: pending again at their old rank, or, with a key and no slot, in its line.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END, updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_parked
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type IN (SELECT value FROM json_each(:types))
)
