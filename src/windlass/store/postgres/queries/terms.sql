-- Of these queues those with limits or rates: how many run under a lease, and what their gates hold.
SELECT queue.name, queue.max_concurrency, queue.rate_limit, CASE WHEN queue.max_concurrency IS NOT NULL THEN (
    SELECT count(*) FROM windlass.leases AS lease JOIN windlass.jobs AS job ON job.worker = lease.runner
    WHERE job.status = 'running' AND job.queue = queue.name
) END AS running, gate.credit, gate.period, gate.at, :now AS now
FROM windlass.queues AS queue LEFT JOIN windlass.gates AS gate
    ON gate.queue = queue.name AND gate.key = '' AND queue.rate_limit IS NOT NULL
WHERE queue.name = ANY(:queues::text[]) AND queue.ruled
