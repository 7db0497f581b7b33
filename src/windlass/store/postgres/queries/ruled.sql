-- What a claim of a ruled queue must obey, as it stands now: none, if it is paused. The runner's own share is locked, so
-- that nobody trims it before the claim is over; one that somebody else has in hand counts as none. What is counted in
-- the same statement may be older than the lock: what must not be is counted in the next one.
WITH queue AS MATERIALIZED (
    SELECT * FROM windlass.queues
    WHERE name = :queue::text AND (NOT paused OR paused_until <= :now)
), mine AS MATERIALIZED (
    SELECT slots FROM windlass.shares
    WHERE queue = :queue::text AND runner = :runner::text AND (SELECT max_concurrency FROM queue) IS NOT NULL
    FOR NO KEY UPDATE SKIP LOCKED
), place AS MATERIALIZED (
    SELECT urgency, rank, returns FROM windlass.floors WHERE queue = :queue::text ORDER BY urgency
)
SELECT EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > :now) AS leased,
    EXISTS (
        SELECT 1 FROM windlass.jobs
        WHERE worker = :runner::text AND claim = :claim::bigint AND status = 'running' AND :first::boolean
    ) AS again,
    queue.max_concurrency, queue.rate_limit, queue.fair, queue.rated,
    CASE WHEN queue.fair THEN queue.declared ELSE '{}' END AS declared,
    CASE WHEN queue.fair THEN queue.changed ELSE '{}' END AS changed,
    coalesce((SELECT slots FROM mine), 0) AS slots,
    CASE WHEN queue.max_concurrency IS NOT NULL
        THEN (SELECT coalesce(sum(slots), 0)::bigint FROM windlass.shares WHERE queue = :queue::text) ELSE 0 END AS given,
    gate.credit, gate.period, gate.at,
    (SELECT coalesce(sum(returns), 0)::bigint FROM place) AS returns,
    ARRAY(SELECT urgency FROM place) AS urgencies, ARRAY(SELECT rank FROM place) AS floors, :now AS now,
    EXISTS (SELECT 1 FROM windlass.marks WHERE queue = :queue::text AND tx >= :since::bigint) AS marked,
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS behind
FROM queue LEFT JOIN windlass.gates AS gate
    ON gate.queue = :queue::text AND gate.key = '' AND queue.rate_limit IS NOT NULL
