-- Running jobs of a worker's runners that were asked to stop, by the partial index.
SELECT job.id, job.attempt, job.worker
FROM windlass.leases AS lease CROSS JOIN LATERAL (
    SELECT id::text, attempt, worker FROM windlass.jobs
    WHERE worker = lease.runner AND cancel_requested AND status || '' = 'running' OFFSET 0
) AS job
WHERE lease.worker = :worker
ORDER BY job.id
