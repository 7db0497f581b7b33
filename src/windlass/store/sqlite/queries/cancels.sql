-- Running jobs of a worker's runners that were asked to stop.
SELECT job.id, job.attempt, job.worker
FROM windlass_jobs AS job INDEXED BY windlass_jobs_cancelling
JOIN windlass_leases AS lease ON lease.runner = job.worker
WHERE job.cancel_requested = 1 AND job.status = 'running' AND lease.worker = :worker
