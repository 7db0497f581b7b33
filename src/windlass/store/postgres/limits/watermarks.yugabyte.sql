-- replaces: add_watermarks
-- Add the watermarks of all buckets where there are none, in order, and the rows that claims of the queue lock.
WITH lock AS (
    INSERT INTO windlass.claim_locks (queue, bucket)
    SELECT DISTINCT new.queue, part.bucket FROM unnest(:queues::text[]) AS new (queue) CROSS JOIN windlass.due_watermark AS part
    WHERE NOT EXISTS (SELECT 1 FROM windlass.claim_locks AS old WHERE old.queue = new.queue AND old.bucket = part.bucket)
    ORDER BY new.queue, part.bucket
    ON CONFLICT DO NOTHING
)
INSERT INTO windlass.watermarks (queue, sort_priority, bucket)
SELECT new.queue, new.sort_priority, part.bucket
FROM unnest(:queues::text[], :sort_priorities::integer[]) AS new (queue, sort_priority) CROSS JOIN windlass.due_watermark AS part
WHERE NOT EXISTS (
    SELECT 1 FROM windlass.watermarks AS old
    WHERE old.queue = new.queue AND old.sort_priority = new.sort_priority AND old.bucket = part.bucket
)
ORDER BY new.queue, new.sort_priority, part.bucket
ON CONFLICT DO NOTHING

-- replaces: lower_watermarks
-- Lower the watermarks of all buckets to jobs that were put back, and increment `returns`, which stops a concurrent raise.
WITH put AS MATERIALIZED (
    SELECT queue, sort_priority, min(rank) AS rank
    FROM unnest(:queues::text[], :sort_priorities::integer[], :ranks::bigint[]) AS put (queue, sort_priority, rank)
    GROUP BY queue, sort_priority
), lock AS (
    INSERT INTO windlass.claim_locks (queue, bucket)
    SELECT DISTINCT put.queue, part.bucket FROM put CROSS JOIN windlass.due_watermark AS part
    WHERE NOT EXISTS (SELECT 1 FROM windlass.claim_locks AS old WHERE old.queue = put.queue AND old.bucket = part.bucket)
    ORDER BY put.queue, part.bucket
    ON CONFLICT DO NOTHING
)
INSERT INTO windlass.watermarks AS watermark (queue, sort_priority, bucket, rank, returns)
SELECT put.queue, put.sort_priority, part.bucket, 0, 1 FROM put CROSS JOIN windlass.due_watermark AS part
ORDER BY put.queue, put.sort_priority, part.bucket
ON CONFLICT (queue, sort_priority, bucket) DO UPDATE SET rank = least(watermark.rank, (
    SELECT put.rank FROM put WHERE put.queue = watermark.queue AND put.sort_priority = watermark.sort_priority
)), returns = watermark.returns + 1

-- replaces: raise_due_watermark
-- Raise the due watermark of each bucket to :due or to its first scheduled job, if every transaction that had begun when
-- :due was recorded should have ended by now.
UPDATE windlass.due_watermark AS watermark
SET due = least(:due::bigint, (
    SELECT job.run_at FROM windlass.jobs AS job
    WHERE job.bucket = watermark.bucket AND job.stage IN ('scheduled', 'failed') AND job.run_at < :due::bigint
        AND job.run_at >= CASE WHEN :whole::boolean THEN 0 ELSE watermark.due END
    ORDER BY job.run_at, job.id LIMIT 1
))
WHERE :horizon >= :ahead::bigint
RETURNING due

-- replaces: raise_watermarks
-- Raise the watermarks of the next queues and priorities, in each bucket to :rank or to its lowest pending rank.
WITH portion AS MATERIALIZED (
    SELECT queue, sort_priority FROM windlass.watermarks
    WHERE bucket = 0 AND (queue, sort_priority) > (:queue::text, :sort_priority::integer)
    ORDER BY queue, sort_priority LIMIT :limit::integer
), part AS MATERIALIZED (
    SELECT level.queue, level.sort_priority, level.bucket, level.rank, level.returns
    FROM portion JOIN windlass.watermarks AS level ON level.queue = portion.queue AND level.sort_priority = portion.sort_priority
), busy AS MATERIALIZED (
    SELECT DISTINCT queue FROM windlass.meters WHERE interval_start >= :since::bigint
), seen AS MATERIALIZED (
    SELECT queue, sort_priority, bucket, returns, rank AS watermark, least(:rank::bigint, (
        SELECT job.rank FROM windlass.jobs AS job
        WHERE job.bucket = part.bucket AND job.queue = part.queue AND job.sort_priority = part.sort_priority
            AND job.stage = 'pending' AND job.status = 'pending' AND job.rank >= part.rank
        ORDER BY job.rank, job.id LIMIT 1
    )) AS rank
    FROM part WHERE rank < :idle::bigint OR (rank < :rank::bigint AND queue IN (SELECT queue FROM busy))
), held AS MATERIALIZED (
    SELECT level.queue, level.sort_priority, level.bucket, level.returns, seen.returns AS known, seen.rank
    FROM seen JOIN windlass.watermarks AS level
        ON level.queue = seen.queue AND level.sort_priority = seen.sort_priority AND level.bucket = seen.bucket
    WHERE seen.rank > seen.watermark
    FOR NO KEY UPDATE OF level SKIP LOCKED
), raised AS (
    UPDATE windlass.watermarks AS watermark SET rank = held.rank FROM held
    WHERE watermark.queue = held.queue AND watermark.sort_priority = held.sort_priority AND watermark.bucket = held.bucket
        AND held.returns = held.known AND watermark.rank < held.rank
    RETURNING 1
)
SELECT (SELECT count(*) FROM portion), last.queue, last.sort_priority, (SELECT count(*) FROM raised)
FROM (SELECT queue, sort_priority FROM portion ORDER BY queue DESC, sort_priority DESC LIMIT 1) AS last

-- replaces: below_watermarks
-- The lowest pending job of each queue and priority, if no claim would find it in its bucket because it is below the
-- watermark, or there is none.
WITH RECURSIVE level AS (
    SELECT first.* FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT bucket, queue, sort_priority, rank FROM windlass.jobs
        WHERE bucket = part.bucket AND stage = 'pending' AND status = 'pending'
        ORDER BY queue, sort_priority, rank, id LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.* FROM level CROSS JOIN LATERAL (
        SELECT job.bucket, job.queue, job.sort_priority, job.rank FROM windlass.jobs AS job
        WHERE job.bucket = level.bucket AND job.stage = 'pending' AND job.status = 'pending'
            AND (job.queue, job.sort_priority) > (level.queue, level.sort_priority)
        ORDER BY job.queue, job.sort_priority, job.rank, job.id LIMIT 1
    ) AS next
)
SELECT level.queue, level.sort_priority, min(level.rank)
FROM level LEFT JOIN windlass.watermarks AS watermark
    ON watermark.queue = level.queue AND watermark.sort_priority = level.sort_priority AND watermark.bucket = level.bucket
WHERE watermark.rank IS NULL OR level.rank < watermark.rank
GROUP BY level.queue, level.sort_priority
