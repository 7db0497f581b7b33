-- The limits of a queue for a claim; no row if it is paused. The runner's own quota is locked until the claim ends;
-- one that is locked counts as none. Counts in this statement may be older than the lock: what must not be is counted
-- by a later one.
WITH queue AS MATERIALIZED (
    SELECT * FROM windlass.queues
    WHERE name = :queue::text AND (NOT paused OR paused_until <= :now)
), mine AS MATERIALIZED (
    SELECT slots FROM windlass.quotas
    WHERE queue = :queue::text AND runner = :runner::text AND (SELECT max_concurrency FROM queue) IS NOT NULL
    FOR NO KEY UPDATE SKIP LOCKED
), place AS MATERIALIZED (
    SELECT sort_priority, rank, returns FROM windlass.watermarks WHERE queue = :queue::text ORDER BY sort_priority
)
SELECT (SELECT expires_at > :now FROM windlass.leases WHERE runner = :runner::text) AS leased,
    EXISTS (
        SELECT 1 FROM windlass.jobs
        WHERE worker = :runner::text AND claim = :claim::bigint AND status = 'running' AND :first::boolean
    ) AS again,
    queue.max_concurrency, queue.rate_limit, queue.fair, queue.rated,
    CASE WHEN queue.fair THEN queue.declared ELSE '{}' END AS declared,
    CASE WHEN queue.fair THEN queue.changed ELSE '{}' END AS changed,
    coalesce((SELECT slots FROM mine), 0) AS slots,
    CASE WHEN queue.max_concurrency IS NOT NULL
        THEN (SELECT coalesce(sum(slots), 0)::bigint FROM windlass.quotas WHERE queue = :queue::text) ELSE 0 END AS given,
    bucket.credit, bucket.period, bucket.at,
    (SELECT coalesce(sum(returns), 0)::bigint FROM place) AS returns,
    ARRAY(SELECT sort_priority FROM place) AS sort_priorities, ARRAY(SELECT rank FROM place) AS watermarks, :now AS now,
    EXISTS (SELECT 1 FROM windlass.dirty_keys WHERE queue = :queue::text AND tx >= :since::bigint) AS marked,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS behind
FROM queue LEFT JOIN windlass.buckets AS bucket
    ON bucket.queue = :queue::text AND bucket.key = '' AND queue.rate_limit IS NOT NULL
