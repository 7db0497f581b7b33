-- What the store thinks a runner is running.
SELECT id, attempt, queue FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE worker = :runner AND status = 'running'
