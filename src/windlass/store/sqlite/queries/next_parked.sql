-- The next type of which jobs are parked: one seek each, however many there are.
SELECT type FROM windlass_jobs INDEXED BY windlass_jobs_parked
WHERE status = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1
