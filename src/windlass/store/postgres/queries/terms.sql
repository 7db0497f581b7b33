-- Of these queues those with limits or rates: how many run under a lease, and what their gates hold.
SELECT queue.name, queue.max_concurrency, queue.rate_limit, CASE WHEN queue.max_concurrency IS NOT NULL THEN (
    SELECT coalesce(sum((
        SELECT count(*) FROM windlass.jobs AS job
        WHERE job.worker = lease.runner AND job.status = 'running' AND job.queue || '' = queue.name
    )), 0) FROM windlass.leases AS lease
) END AS running, gate.credit, gate.period, gate.at, :now AS now
FROM windlass.queues AS queue LEFT JOIN windlass.gates AS gate
    ON gate.queue = queue.name AND gate.key = '' AND queue.rate_limit IS NOT NULL
WHERE queue.name = ANY(:queues::text[]) AND queue.ruled
