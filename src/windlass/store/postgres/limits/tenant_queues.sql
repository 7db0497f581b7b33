-- name: fair_levels
SELECT watermark.queue, watermark.sort_priority, min(watermark.rank) FROM windlass.queues AS queue
JOIN windlass.watermarks AS watermark ON watermark.queue = queue.name WHERE queue.fair
GROUP BY watermark.queue, watermark.sort_priority ORDER BY watermark.queue, watermark.sort_priority

-- name: assign_tenant_queues
-- Assign tenant queues to a portion of the pending jobs at one priority of a fair queue. Returns how many got one, and the
-- last job that was read, if there may be more.
WITH seen AS MATERIALIZED (
    SELECT ctid, rank, id, tenant_queue FROM windlass.jobs
    WHERE queue = :queue::text AND sort_priority = :sort_priority::integer AND stage = 'pending' AND status = 'pending'
    AND (rank, id) > (:rank::bigint, :id::uuid)
    ORDER BY rank, id LIMIT :limit::integer
), moved AS (
    UPDATE windlass.jobs SET tenant_queue = coalesce(tenant, '') WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM windlass.jobs WHERE ctid = ANY(ARRAY(SELECT ctid FROM seen WHERE tenant_queue IS NULL))
        AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    )) RETURNING 1
)
SELECT (SELECT count(*) FROM moved), last.rank, last.id::text
FROM (VALUES (1)) AS always LEFT JOIN (
    SELECT rank, id FROM seen WHERE (SELECT count(*) FROM seen) = :limit::integer ORDER BY rank DESC, id DESC LIMIT 1
) AS last ON true
