-- What is ahead of a waiting job, each counted up to a bound by an index: at higher priorities; at its own; in its
-- tenant queue; all at its priority; jobs that wait for its key; running jobs of its queue; held slots of its key.
-- Pending jobs are above the watermarks.
SELECT
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE place.queue = :queue::text AND place.sort_priority < :sort_priority::integer LIMIT :most_ahead::bigint
    ) AS sooner),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
            AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE place.queue = :queue::text AND place.sort_priority = :sort_priority::integer
    ) AS before),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND sort_priority = place.sort_priority AND tenant_queue IS NOT NULL AND tenant_queue = :lane::text
            AND rank >= place.rank AND status = 'pending' AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND place.queue = :queue::text AND place.sort_priority = :sort_priority::integer
    ) AS tenant_queue),
    (SELECT count(*) FROM (
        SELECT FROM windlass.watermarks AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
            AND id <> :id::uuid
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND place.queue = :queue::text AND place.sort_priority = :sort_priority::integer
    ) AS beside),
    (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :in_line::boolean AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) < :order::integer
        LIMIT :most_in_line::bigint
    ) AS sooner_in_line) + (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :in_line::boolean AND status = 'blocked' AND reason = 'waits for its concurrency key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE sort_priority END) = :order::integer
        AND (rank, id) < (:line_rank::bigint, :id::uuid) LIMIT :most_in_line::bigint
    ) AS before_in_line),
    (SELECT count(*) FROM (
        SELECT FROM windlass.leases AS lease CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs WHERE worker = lease.runner AND status = 'running' AND queue = :queue::text
            LIMIT :most_in_line::bigint
        ) AS job
        LIMIT :most_in_line::bigint
    ) AS running),
    (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :in_line::boolean AND slot IS NOT NULL AND queue = :queue::text AND concurrency_key = :key::text
        LIMIT :most_in_line::bigint
    ) AS slots)
