-- Tenants with pending jobs at one priority of a fair queue, from tenant to tenant in the index, above the watermark.
WITH RECURSIVE bottom AS MATERIALIZED (
    SELECT rank FROM windlass.watermarks WHERE :fair::boolean AND queue = :queue::text AND sort_priority = :sort_priority::integer
), walk (tenant_queue, n) AS (
    SELECT (
        SELECT tenant_queue FROM windlass.jobs
        WHERE tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue::text AND sort_priority = :sort_priority::integer
        AND rank >= bottom.rank
        ORDER BY tenant_queue LIMIT 1
    ), 1 FROM bottom
    UNION ALL
    SELECT (
        SELECT tenant_queue FROM windlass.jobs
        WHERE tenant_queue IS NOT NULL AND status = 'pending' AND queue = :queue::text AND sort_priority = :sort_priority::integer
        AND tenant_queue > walk.tenant_queue AND rank >= bottom.rank
        ORDER BY tenant_queue LIMIT 1
    ), n + 1 FROM walk CROSS JOIN bottom WHERE walk.tenant_queue IS NOT NULL AND n < :most_tenants::integer
)
SELECT tenant_queue FROM walk WHERE tenant_queue IS NOT NULL
