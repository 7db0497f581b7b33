-- Tenants with pending jobs at one priority of a fair queue, from one on, from tenant to tenant in the index.
WITH RECURSIVE waiting (tenant_queue, n) AS (
    (
        SELECT tenant_queue, 1 FROM windlass.jobs
        WHERE queue COLLATE "C" = :queue::text AND sort_priority = :sort_priority::integer AND status = 'pending' AND tenant_queue IS NOT NULL
        AND tenant_queue >= :from::text
        ORDER BY tenant_queue, rank, id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.tenant_queue FROM windlass.jobs AS job
        WHERE job.queue COLLATE "C" = :queue::text AND job.sort_priority = :sort_priority::integer AND job.status = 'pending'
        AND job.tenant_queue IS NOT NULL AND job.tenant_queue > waiting.tenant_queue
        ORDER BY job.tenant_queue, job.rank, job.id LIMIT 1
    ), n + 1
    FROM waiting WHERE waiting.tenant_queue IS NOT NULL AND n < :limit::integer
)
SELECT tenant_queue FROM waiting WHERE tenant_queue IS NOT NULL
