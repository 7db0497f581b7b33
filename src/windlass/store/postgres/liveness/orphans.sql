-- Runners that hold jobs since :before and have no lease, from runner to runner in the index.
WITH RECURSIVE holders AS (
    (SELECT worker FROM windlass.jobs WHERE status = 'running' ORDER BY worker LIMIT 1)
    UNION ALL
    SELECT (
        SELECT job.worker FROM windlass.jobs AS job
        WHERE job.status = 'running' AND job.worker > holders.worker ORDER BY job.worker LIMIT 1
    )
    FROM holders WHERE holders.worker IS NOT NULL
)
SELECT worker FROM holders
WHERE worker IS NOT NULL
    AND NOT EXISTS (SELECT FROM windlass.leases AS lease WHERE lease.runner = holders.worker)
    AND EXISTS (
        SELECT FROM windlass.jobs AS job
        WHERE job.status = 'running' AND job.worker = holders.worker AND job.claimed_at <= :before::bigint OFFSET 0
    )
LIMIT :limit::integer
