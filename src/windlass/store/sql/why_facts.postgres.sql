-- name: queue_position
-- What is ahead of a waiting job: pending jobs at higher priorities; at its own; in its tenant queue; all at its
-- priority; jobs that wait for its key; running jobs of its queue; taken key slots of its key. Each is counted by an
-- index, up to a bound; pending jobs from the watermarks on.
SELECT
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
            AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
            LIMIT :max_ahead::bigint
        ) AS job
        WHERE watermark.queue = :queue::text AND watermark.sort_priority < :sort_priority::integer LIMIT :max_ahead::bigint
    ) AS higher),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
            AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
            AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :max_ahead::bigint
        ) AS job
        WHERE watermark.queue = :queue::text AND watermark.sort_priority = :sort_priority::integer
    ) AS before),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue COLLATE "C" = watermark.queue
            AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
            AND tenant_queue IS NOT NULL AND tenant_queue = :tenant_queue::text
            AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending' AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :max_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND watermark.queue = :queue::text AND watermark.sort_priority = :sort_priority::integer
    ) AS tenant_queue),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
            AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
            AND id <> :id::uuid
            LIMIT :max_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND watermark.queue = :queue::text AND watermark.sort_priority = :sort_priority::integer
    ) AS same_priority),
    (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :waits_for_key::boolean AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) < :key_priority::integer
        LIMIT :max_for_key::bigint
    ) AS first_for_key) + (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :waits_for_key::boolean AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) = :key_priority::integer
        AND (rank, id) < (:key_rank::bigint, :id::uuid) LIMIT :max_for_key::bigint
    ) AS before_for_key),
    (SELECT count(*) FROM (
        SELECT FROM windlass.leases AS lease CROSS JOIN LATERAL (
            SELECT FROM windlass.held_jobs AS held WHERE held.runner = lease.runner AND held.queue = :queue::text
            LIMIT :max_for_key::bigint
        ) AS job
        LIMIT :max_for_key::bigint
    ) AS running),
    (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :waits_for_key::boolean AND key_slot IS NOT NULL AND queue = :queue::text AND concurrency_key = :key::text
        LIMIT :max_for_key::bigint
    ) AS key_slots)

-- name: waiting_tenants
-- Tenants with pending jobs at one priority of a fair queue: one seek each in the index, above the watermark.
WITH RECURSIVE lowest AS MATERIALIZED (
    SELECT min(rank) AS rank FROM windlass.watermarks
    WHERE :fair::boolean AND queue = :queue::text AND sort_priority = :sort_priority::integer
), walk (tenant_queue, n) AS (
    SELECT (
        SELECT tenant_queue FROM windlass.jobs
        WHERE tenant_queue IS NOT NULL AND stage = 'pending' AND status = 'pending'
        AND queue COLLATE "C" = :queue::text AND sort_priority = :sort_priority::integer
        AND rank >= lowest.rank
        ORDER BY tenant_queue LIMIT 1
    ), 1 FROM lowest
    UNION ALL
    SELECT (
        SELECT tenant_queue FROM windlass.jobs
        WHERE tenant_queue IS NOT NULL AND stage = 'pending' AND status = 'pending'
        AND queue COLLATE "C" = :queue::text AND sort_priority = :sort_priority::integer
        AND tenant_queue > walk.tenant_queue AND rank >= lowest.rank
        ORDER BY tenant_queue LIMIT 1
    ), n + 1 FROM walk CROSS JOIN lowest WHERE walk.tenant_queue IS NOT NULL AND n < :max_tenants::integer
)
SELECT tenant_queue FROM walk WHERE tenant_queue IS NOT NULL

-- name: longest_running
-- The jobs of a queue that have been running longest, among the first of each runner with a lease.
SELECT job.id::text, job.status, job.claimed_at, job.run_at, job.runner
FROM windlass.leases AS lease CROSS JOIN LATERAL (
    SELECT id, status, claimed_at, run_at, runner FROM windlass.held_jobs AS held
    WHERE held.runner = lease.runner AND held.queue = :queue::text LIMIT :max_for_key::bigint
) AS job
ORDER BY job.claimed_at, job.id LIMIT :max_named::bigint

-- name: key_slot_holders
SELECT id::text, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass.jobs
WHERE :waits_for_key::boolean AND key_slot IS NOT NULL AND queue = :queue::text AND concurrency_key = :key::text
ORDER BY key_slot LIMIT :max_named::bigint
