-- The next queue that has pending jobs: one seek each, however many jobs they hold.
SELECT queue FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' AND queue > :after ORDER BY queue LIMIT 1
