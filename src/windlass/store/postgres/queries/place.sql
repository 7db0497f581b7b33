-- What is before a waiting job, each counted up to a bound inside an index: at a higher priority; at its own; in its lane;
-- all at its priority; in the line for its key; what runs in its queue; the slots of its key that are held. What is
-- pending lies above the floors: below are only entries that nobody has cleaned yet.
SELECT
    (SELECT count(*) FROM (
        SELECT FROM windlass.floors AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE place.queue = :queue::text AND place.urgency < :urgency::integer LIMIT :most_ahead::bigint
    ) AS sooner),
    (SELECT count(*) FROM (
        SELECT FROM windlass.floors AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
            AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE place.queue = :queue::text AND place.urgency = :urgency::integer
    ) AS before),
    (SELECT count(*) FROM (
        SELECT FROM windlass.floors AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND urgency = place.urgency AND lane IS NOT NULL AND lane = :lane::text
            AND rank >= place.rank AND status = 'pending' AND (rank, id) < (:rank::bigint, :id::uuid)
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND place.queue = :queue::text AND place.urgency = :urgency::integer
    ) AS lane),
    (SELECT count(*) FROM (
        SELECT FROM windlass.floors AS place CROSS JOIN LATERAL (
            SELECT FROM windlass.jobs
            WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
            AND id <> :id::uuid
            LIMIT :most_ahead::bigint
        ) AS job
        WHERE :fair::boolean AND place.queue = :queue::text AND place.urgency = :urgency::integer
    ) AS beside),
    (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :in_line::boolean AND status = 'blocked' AND reason = 'in line for its key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE urgency END) < :order::integer
        LIMIT :most_in_line::bigint
    ) AS sooner_in_line) + (SELECT count(*) FROM (
        SELECT FROM windlass.jobs
        WHERE :in_line::boolean AND status = 'blocked' AND reason = 'in line for its key' AND queue = :queue::text
        AND concurrency_key = :key::text AND (CASE WHEN key_strict THEN 0 ELSE urgency END) = :order::integer
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
