-- Running jobs of a worker's runners that were asked to stop.
SELECT job.id::text, job.attempt, job.worker
FROM windlass.leases AS lease
JOIN windlass.jobs AS job ON job.worker = lease.runner AND job.cancel_requested AND job.status || '' = 'running'
WHERE lease.worker = :worker
ORDER BY job.id
