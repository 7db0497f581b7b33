-- Make due jobs pending. The rank is never in the past: see core/admission.py.
UPDATE windlass_jobs
SET status = 'pending', reason = NULL,
    -- Who stepped aside for a rate has not lost its place by that.
    rank = CASE WHEN reason IS 'rate limit of its key' THEN rank ELSE max(run_at, :now) END, updated_at = :now
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit
)
