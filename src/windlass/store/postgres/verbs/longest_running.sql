-- The longest running jobs of a queue, from lease to lease by jobs_held.
SELECT job.id::text, job.status, job.claimed_at, job.run_at, job.worker
FROM windlass.leases AS lease CROSS JOIN LATERAL (
    SELECT id, status, claimed_at, run_at, worker FROM windlass.jobs
    WHERE worker = lease.runner AND status = 'running' AND queue = :queue::text LIMIT :most_in_line::bigint
) AS job
ORDER BY job.claimed_at, job.id LIMIT :most_named::bigint
