-- Runners that hold jobs and have no lease.
SELECT DISTINCT worker FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE status = 'running' AND worker NOT IN (SELECT runner FROM windlass_leases) LIMIT :limit
