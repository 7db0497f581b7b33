-- When the next job is due.
SELECT run_at FROM windlass_jobs INDEXED BY windlass_jobs_due
WHERE status IN ('scheduled', 'failed') ORDER BY run_at, id LIMIT 1
