-- How many jobs each worker's runners hold: from the leases, which are few, to what each runner holds by its index.
SELECT lease.worker, count(*)
FROM windlass_leases AS lease CROSS JOIN windlass_jobs AS job INDEXED BY windlass_jobs_held ON job.worker = lease.runner
WHERE job.status = 'running' GROUP BY lease.worker
