-- replaces: assign_tenant_queues
-- Assign tenant queues to a portion of the pending jobs at one priority of a fair queue, in the order of all buckets.
WITH seen AS MATERIALIZED (
    SELECT head.rank, head.id, head.tenant_queue FROM (/*each*/(
        SELECT rank, id, tenant_queue FROM windlass.jobs
        WHERE bucket = :bucket AND queue = :queue::text AND sort_priority = :sort_priority::integer
        AND stage = 'pending' AND status = 'pending' AND (rank, id) > (:rank::bigint, :id::uuid)
        ORDER BY rank, id LIMIT :limit::integer
    )/*end*/) AS head ORDER BY head.rank, head.id LIMIT :limit::integer
), moved AS (
    UPDATE windlass.jobs SET tenant_queue = coalesce(tenant, '') WHERE id = ANY(ARRAY(
        SELECT id FROM windlass.jobs WHERE id = ANY(ARRAY(SELECT id FROM seen WHERE tenant_queue IS NULL))
        AND status || '' = 'pending' AND queue || '' = :queue::text FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT (SELECT count(*) FROM moved), last.rank, last.id::text
FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT rank, id FROM seen WHERE (SELECT count(*) FROM seen) = :limit::integer ORDER BY rank DESC, id DESC LIMIT 1
) AS last ON true
