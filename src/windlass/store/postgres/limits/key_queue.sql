-- name: queues_with_dirty_keys
-- Queues with dirty keys, and the first transaction whose dirty keys this read may not have seen.
SELECT ARRAY(
    SELECT name FROM windlass.queues AS queue
    WHERE EXISTS (SELECT 1 FROM windlass.dirty_keys AS dirty WHERE dirty.queue = queue.name AND dirty.tx >= :since::bigint)
), :horizon

-- name: lock_queue_of_keys
-- Lock the queue, so that one process at a time admits jobs that wait for keys. The commit need not be flushed, because the
-- claim that follows is later in the WAL.
SELECT name, set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED

-- name: admit_waiting
-- Process dirty keys: as many waiting jobs as there are free key slots become pending, each with a key slot. Returns the
-- number of dirty keys, of admitted jobs, of keys that may have more, and of those that stay dirty; and the first
-- transaction whose dirty keys may not have been seen. A rank is never in the past, below the watermark, or below :beyond. The caller has locked the
-- queue in an earlier statement, so this one sees the key slots that were assigned before. Locked jobs are skipped, and
-- their keys stay dirty; the order of a strict key is never violated. The status is compared as an expression, so that
-- no other index than jobs_waiting_for_key can be used.
WITH /*plain*/first AS MATERIALIZED (
    SELECT ctid AS at, key FROM windlass.dirty_keys
    WHERE queue = :queue::text AND tx >= :since::bigint ORDER BY tx LIMIT :limit::integer
), touched AS MATERIALIZED (
    SELECT DISTINCT key FROM first
), /*end*/taken AS (
    -- Also the later dirty rows of the same keys: this statement sees the changes that they announce.
    DELETE FROM windlass.dirty_keys
    WHERE /*plain*/ctid = ANY (ARRAY(SELECT at FROM first) || ARRAY(
        SELECT again.at FROM touched CROSS JOIN LATERAL (
            SELECT ctid AS at FROM windlass.dirty_keys AS dirty
            WHERE dirty.queue COLLATE "C" = :queue::text AND dirty.key = touched.key AND dirty.tx >= :since::bigint
            LIMIT :max_admitted::integer
        ) AS again
    ))/*end*//*yugabyte queue = :queue::text AND tx >= :since::bigint AND part = ANY (ARRAY(
        SELECT dirty.part FROM windlass.dirty_keys AS dirty
        WHERE dirty.queue = :queue::text AND dirty.tx >= :since::bigint ORDER BY dirty.tx LIMIT :limit::integer
    )) RETURNING key */
), held AS MATERIALIZED (
    -- Only keys for which jobs wait.
    SELECT touched.key, head.first, head.limits[1] AS most, coalesce(head.limits[2], 0) AS second, ARRAY(
        SELECT key_slot FROM windlass.jobs WHERE queue = :queue::text AND concurrency_key = touched.key AND key_slot IS NOT NULL
    ) AS key_slots
    FROM /*plain*/touched/*end*//*yugabyte (SELECT DISTINCT key FROM taken) AS touched*/ CROSS JOIN LATERAL (
        SELECT (array_agg(id))[1] AS first, array_agg(coalesce(key_limit, 1)) AS limits FROM (
            SELECT id, key_limit FROM windlass.jobs
            WHERE queue = :queue::text AND concurrency_key = touched.key AND status || '' = 'blocked'
            AND reason = 'waits for its concurrency key'
            ORDER BY (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id LIMIT 2
        ) AS two HAVING count(*) > 0
    ) AS head
), room AS MATERIALIZED (
    -- How many jobs to read: as many as the limit of the first allows, and one more if the second has a higher limit.
    SELECT key, first, key_slots, least(most - cardinality(key_slots) + (second > most)::integer, :max_admitted::integer) AS looked, CASE
        WHEN cardinality(key_slots) > 0 THEN ARRAY(
            SELECT n FROM generate_series(0, most) AS n EXCEPT SELECT unnest(key_slots) ORDER BY n
        )
    END AS free
    FROM held WHERE most > cardinality(key_slots)
), locked AS MATERIALIZED (
    SELECT room.*, job.* FROM room CROSS JOIN LATERAL (
        SELECT /*plain*/ctid/*end*//*yugabyte id*/ AS at, id, sort_priority, rank, key_limit, key_strict, key_rate,
            CASE WHEN key_strict THEN 0 ELSE sort_priority END AS key_priority
        FROM windlass.jobs
        WHERE queue = :queue::text AND concurrency_key = room.key AND status || '' = 'blocked'
        AND reason = 'waits for its concurrency key'
        ORDER BY (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id LIMIT room.looked FOR UPDATE SKIP LOCKED
    ) AS job
), judged AS MATERIALIZED (
    -- Each job by its own limit, as in core/flow/key_slots.py, up to the first whose limit is reached.
    SELECT key, first, at, id, sort_priority, key_strict, key_rate, nth,
        CASE WHEN free IS NULL THEN nth - 1 ELSE free[nth] END AS key_slot,
        bool_and(cardinality(key_slots) + nth <= coalesce(key_limit, 1)) OVER (PARTITION BY key ORDER BY nth) AS fits
    FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY key_priority, rank, id) AS nth FROM locked) AS numbered
), next AS MATERIALIZED (
    SELECT * FROM judged WHERE fits AND (key_strict IS NOT TRUE OR (nth = 1 AND id = first))
), unfinished AS MATERIALIZED (
    -- Keys with a job that another transaction has locked, or with possibly more jobs to admit.
    SELECT key, sum(got) > 0 AS more FROM (
        SELECT key, looked, 0 AS got, 0 AS fit, 0 AS found, CASE WHEN looked = 1 THEN 1 ELSE (
            SELECT count(*) FROM (
                SELECT FROM windlass.jobs
                WHERE queue = :queue::text AND concurrency_key = room.key AND status || '' = 'blocked'
                AND reason = 'waits for its concurrency key'
                ORDER BY (CASE WHEN key_strict THEN 0 ELSE sort_priority END), rank, id LIMIT room.looked
            ) AS waiting
        ) END AS seen
        FROM room
        UNION ALL
        SELECT key, 0, 0, fits::integer, 1, 0 FROM judged
        UNION ALL
        SELECT key, 0, 1, 0, 0, 0 FROM next
    ) AS each
    GROUP BY key HAVING sum(found) < sum(seen) OR sum(got) = 0 OR sum(got) < sum(fit)
        OR (sum(got) = sum(looked) AND sum(looked) > 1)
), rated AS (
    UPDATE windlass.queues SET rated = true
    WHERE name = :queue::text AND NOT rated AND EXISTS (SELECT 1 FROM next WHERE key_rate IS NOT NULL)
), admitted AS (
    UPDATE windlass.jobs AS job
    SET status = 'pending', reason = NULL, key_slot = next.key_slot, updated_at = :now,
        -- Behind all watermarks of the queue: one look, instead of one for each job.
        rank = greatest(:now, :beyond::bigint, (
            SELECT max(watermark.rank) FROM windlass./*plain*/watermarks/*end*//*yugabyte highest_watermarks*/ AS watermark
            WHERE watermark.queue = :queue::text
        )),
        tenant_queue = CASE WHEN (SELECT fair FROM windlass.queues WHERE name = :queue::text) THEN coalesce(job.tenant, '') END
    -- By the row's ctid, which does not change because the row is locked.
    FROM next WHERE job./*plain*/ctid/*end*//*yugabyte id*/ = next.at
    RETURNING 1
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT :queue::text, key FROM unfinished
    -- A job that was changed before it was locked has a ctid that this statement does not see.
    UNION SELECT :queue::text, key FROM next WHERE (SELECT count(*) FROM admitted) < (SELECT count(*) FROM next)
    RETURNING 1
)
SELECT (SELECT count(*) FROM /*plain*/first/*end*//*yugabyte taken*/), (SELECT count(*) FROM admitted),
    (SELECT count(*) FROM unfinished WHERE more), (SELECT count(*) FROM dirtied), :horizon

-- name: mark_free_keys
-- Make those of the next :limit keys with waiting jobs dirty that have a free key slot. One seek for each key. Returns the
-- number of keys, the last of them, and how many became dirty.
WITH RECURSIVE page AS (
    (
        SELECT queue, concurrency_key AS key, 1 AS number FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'waits for its concurrency key'
        AND (queue, concurrency_key) > (:queue::text, :key::text)
        ORDER BY queue, concurrency_key LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.key, page.number + 1 FROM page CROSS JOIN LATERAL (
        SELECT job.queue, job.concurrency_key AS key FROM windlass.jobs AS job
        WHERE job.status || '' = 'blocked' AND job.reason = 'waits for its concurrency key'
            AND (job.queue, job.concurrency_key) > (page.queue, page.key)
        ORDER BY job.queue, job.concurrency_key LIMIT 1
    ) AS next
    WHERE page.number < :limit::integer
), free AS MATERIALIZED (
    SELECT page.queue, page.key FROM page CROSS JOIN LATERAL (
        SELECT job.key_limit FROM windlass.jobs AS job
        WHERE job.queue = page.queue AND job.concurrency_key = page.key AND job.status || '' = 'blocked'
            AND job.reason = 'waits for its concurrency key'
        ORDER BY (CASE WHEN job.key_strict THEN 0 ELSE job.sort_priority END), job.rank, job.id LIMIT 1
    ) AS first
    WHERE coalesce(first.key_limit, 1) > (
        SELECT count(*) FROM windlass.jobs AS holder
        WHERE holder.queue = page.queue AND holder.concurrency_key = page.key AND holder.key_slot IS NOT NULL
    )
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT queue, key FROM free
)
SELECT page.number, page.queue, page.key, (SELECT count(*) FROM free) FROM page ORDER BY page.number DESC LIMIT 1
