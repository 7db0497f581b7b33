-- Keys that are marked: as many of those in line as there are free slots become pending, each with a slot of its own. How
-- many marks there were, how many jobs were let in, of how many keys there may be more, and the first transaction of which
-- this has not seen all. The rank is never in the past, below the floor, or where who asks has looked already.
--
-- The caller has locked the queue in an earlier statement: so this one sees the slots that the one before has given. What
-- somebody else has in hand is left to him, and the key is marked again; where order is strict nobody overtakes it.
WITH taken AS (
    DELETE FROM windlass.marks WHERE ctid = ANY (ARRAY(
        SELECT mark.ctid FROM windlass.marks AS mark
        WHERE mark.queue = :queue::text AND mark.tx >= :since::bigint ORDER BY mark.tx LIMIT :limit::integer
    ))
    RETURNING key
), used AS MATERIALIZED (
    -- Only where somebody is in line, and one further than the first of them says: who is next may know of a higher limit.
    SELECT key, slots, least(most - cardinality(slots) + 1, :most::integer) AS looked
    FROM (
        SELECT touched.key, coalesce(first.key_limit, 1) AS most, ARRAY(
            SELECT slot FROM windlass.jobs
            WHERE queue = :queue::text AND concurrency_key = touched.key AND slot IS NOT NULL
        ) AS slots
        FROM (SELECT DISTINCT key FROM taken) AS touched CROSS JOIN LATERAL (
            SELECT key_limit FROM windlass.jobs
            WHERE queue = :queue::text AND concurrency_key = touched.key AND status = 'blocked' AND reason = 'in line for its key'
            ORDER BY (CASE WHEN key_strict THEN 0 ELSE urgency END), rank, id LIMIT 1
        ) AS first
    ) AS each
    WHERE most > cardinality(slots)
), line AS MATERIALIZED (
    -- Each by its own limit, as core/slots.py has it: up to the first whose limit is reached.
    SELECT used.*, ARRAY(
        SELECT id FROM (
            SELECT id, nth, bool_and(cardinality(used.slots) + nth <= coalesce(key_limit, 1)) OVER (ORDER BY nth) AS fits
            FROM (
                SELECT id, key_limit, row_number() OVER (ORDER BY place, rank, id) AS nth FROM (
                    SELECT id, key_limit, rank, CASE WHEN key_strict THEN 0 ELSE urgency END AS place FROM windlass.jobs
                    WHERE queue = :queue::text AND concurrency_key = used.key AND status = 'blocked' AND reason = 'in line for its key'
                    ORDER BY (CASE WHEN key_strict THEN 0 ELSE urgency END), rank, id LIMIT used.looked
                ) AS waiting
            ) AS numbered
        ) AS judged
        WHERE fits ORDER BY nth
    ) AS heads
    FROM used
), room AS MATERIALIZED (
    SELECT line.*, ARRAY(
        SELECT n FROM generate_series(0, cardinality(slots) + cardinality(heads) - 1) AS n
        EXCEPT SELECT unnest(slots) ORDER BY n
    ) AS free
    FROM line
), locked AS MATERIALIZED (
    SELECT room.*, job.* FROM room CROSS JOIN LATERAL (
        SELECT id, urgency, rank, key_limit, key_strict, key_rate, CASE WHEN key_strict THEN 0 ELSE urgency END AS place
        FROM windlass.jobs
        WHERE queue = :queue::text AND concurrency_key = room.key AND status = 'blocked' AND reason = 'in line for its key'
        ORDER BY (CASE WHEN key_strict THEN 0 ELSE urgency END), rank, id LIMIT cardinality(room.heads) FOR UPDATE SKIP LOCKED
    ) AS job
), next AS MATERIALIZED (
    SELECT key, id, urgency, key_rate, free[nth] AS slot
    FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY place, rank, id) AS nth FROM locked) AS numbered
    WHERE CASE WHEN key_strict THEN heads[nth] = id ELSE cardinality(slots) + nth <= coalesce(key_limit, 1) END
), unfinished AS MATERIALIZED (
    -- Somebody had one of them in hand; or all that were looked at were let in, and there may be more.
    SELECT key, sum(got) = sum(seen) AS more FROM (
        SELECT key, cardinality(heads) AS seen, looked, 0 AS got FROM room UNION ALL SELECT key, 0, 0, 1 FROM next
    ) AS each
    GROUP BY key HAVING sum(got) < sum(seen) OR sum(seen) = sum(looked)
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT :queue::text, key FROM unfinished
), places AS (
    INSERT INTO windlass.floors (queue, urgency) SELECT DISTINCT :queue::text, urgency FROM next
    ON CONFLICT (queue, urgency) DO NOTHING
), rated AS (
    UPDATE windlass.queues SET rated = true
    WHERE name = :queue::text AND NOT rated AND EXISTS (SELECT 1 FROM next WHERE key_rate IS NOT NULL)
), admitted AS (
    UPDATE windlass.jobs AS job
    SET status = 'pending', reason = NULL, slot = next.slot, updated_at = :now,
        rank = greatest(:now, :beyond::bigint, (
            SELECT f.rank FROM windlass.floors AS f WHERE f.queue = job.queue AND f.urgency = job.urgency
        )),
        lane = CASE WHEN (SELECT fair FROM windlass.queues WHERE name = :queue::text) THEN coalesce(job.tenant, '') END
    FROM next WHERE job.id = next.id
)
SELECT (SELECT count(*) FROM taken), (SELECT count(*) FROM next), (SELECT count(*) FROM unfinished WHERE more),
    pg_snapshot_xmin(pg_current_snapshot())::text::bigint
