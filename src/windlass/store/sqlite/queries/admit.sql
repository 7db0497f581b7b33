-- Due jobs may run; with a key and no slot they go to its line, in the order in which they are due. The rank among the
-- pending is never in the past: see core/admission.py.
UPDATE windlass_jobs
SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
    reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
    rank = CASE
        WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN run_at
        -- Who stepped aside for a rate has not lost its place by that.
        WHEN reason IS 'rate limit of its key' THEN rank
        ELSE max(run_at, :now)
    END,
    updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit
)
