-- name: add_watermarks
-- Add watermarks where there are none, in order. The statement looks them up first, because in a caller's transaction with
-- an old snapshot an INSERT that conflicts with a changed row is a serialization failure.
INSERT INTO windlass.watermarks (queue, sort_priority)
SELECT new.queue, new.sort_priority
FROM unnest(:queues::text[], :sort_priorities::integer[]) WITH ORDINALITY AS new (queue, sort_priority, nth)
WHERE NOT EXISTS (SELECT 1 FROM windlass.watermarks AS old WHERE old.queue = new.queue AND old.sort_priority = new.sort_priority)
ORDER BY new.nth
ON CONFLICT DO NOTHING

-- name: lower_watermarks
-- Lower watermarks to jobs that were put back, and increment `returns`, which stops a concurrent raise. A new watermark is
-- 0, because a concurrent transaction may put a job there at a lower rank.
INSERT INTO windlass.watermarks AS watermark (queue, sort_priority, rank, returns)
SELECT queue, sort_priority, 0, 1 FROM unnest(:queues::text[], :sort_priorities::integer[], :ranks::bigint[])
    AS put (queue, sort_priority, rank)
GROUP BY queue, sort_priority ORDER BY queue, sort_priority
ON CONFLICT (queue, sort_priority) DO UPDATE SET rank = least(watermark.rank, (
    SELECT min(rank) FROM unnest(:queues::text[], :sort_priorities::integer[], :ranks::bigint[]) AS put (queue, sort_priority, rank)
    WHERE put.queue = watermark.queue AND put.sort_priority = watermark.sort_priority
)), returns = watermark.returns + 1

-- name: raise_due_watermark
-- Raise the due watermark to :due or to the first scheduled job, if every transaction that had begun when :due was
-- recorded has ended. With :whole, the search begins at 0, and may lower the watermark.
UPDATE windlass.due_watermark AS watermark
SET due = least(:due::bigint, (
    SELECT job.run_at FROM windlass.jobs AS job
    WHERE job.stage IN ('scheduled', 'failed') AND job.run_at < :due::bigint
        AND job.run_at >= CASE WHEN :whole::boolean THEN 0 ELSE (SELECT due FROM windlass.due_watermark WHERE one = 1) END
    ORDER BY job.run_at, job.id LIMIT 1
))
WHERE watermark.one = 1 AND :horizon >= :ahead::bigint
RETURNING due

-- name: transaction_id
-- The time, and an id above those of all transactions that have begun: the id of this transaction. Not the upper end of a
-- snapshot, above which transactions may be running.
SELECT :now, :transaction

-- name: progress
-- The lowest id of a running transaction, and the number of rows ever written to jobs, by the statistics.
SELECT :horizon, /*plain*/
    pg_stat_get_tuples_inserted('windlass.jobs'::regclass) + pg_stat_get_tuples_updated('windlass.jobs'::regclass)
    /*end*//*yugabyte :transaction */

-- name: raise_watermarks
-- Raise the next watermarks, in order, to :rank or to the lowest pending rank. Returns how many were read, the last of
-- them, and how many were raised. The watermark of an idle queue is raised only when it is far behind. A watermark is not
-- raised if its `returns` differs from this statement's snapshot, because a job was put back since. Locked rows are
-- skipped.
WITH portion AS MATERIALIZED (
    SELECT queue, sort_priority, rank, returns FROM windlass.watermarks
    WHERE (queue, sort_priority) > (:queue::text, :sort_priority::integer) ORDER BY queue, sort_priority LIMIT :limit::integer
), busy AS MATERIALIZED (
    SELECT DISTINCT queue FROM windlass.meters WHERE interval_start >= :since::bigint
), seen AS MATERIALIZED (
    SELECT queue, sort_priority, returns, rank AS watermark, least(:rank::bigint, (
        SELECT job.rank FROM windlass.jobs AS job
        WHERE job.queue = portion.queue AND job.sort_priority = portion.sort_priority AND job.stage = 'pending'
        AND job.status = 'pending'
            AND job.rank >= portion.rank
        ORDER BY job.rank, job.id LIMIT 1
    )) AS rank
    FROM portion WHERE rank < :idle::bigint OR (rank < :rank::bigint AND queue IN (SELECT queue FROM busy))
), held AS MATERIALIZED (
    SELECT level.queue, level.sort_priority, level.returns, seen.returns AS known, seen.rank
    FROM seen JOIN windlass.watermarks AS level ON level.queue = seen.queue AND level.sort_priority = seen.sort_priority
    WHERE seen.rank > seen.watermark
    FOR NO KEY UPDATE OF level SKIP LOCKED
), raised AS (
    UPDATE windlass.watermarks AS watermark SET rank = held.rank FROM held
    WHERE watermark.queue = held.queue AND watermark.sort_priority = held.sort_priority AND held.returns = held.known
        AND watermark.rank < held.rank
    RETURNING 1
)
SELECT (SELECT count(*) FROM portion), last.queue, last.sort_priority, (SELECT count(*) FROM raised)
FROM (SELECT queue, sort_priority FROM portion ORDER BY queue DESC, sort_priority DESC LIMIT 1) AS last

-- name: below_watermarks
-- For each queue and priority, the lowest pending job, if no claim would find it because it is below its watermark, or has
-- none. Scans all dead entries below, so it runs rarely.
WITH RECURSIVE level AS (
    (
        SELECT queue, sort_priority, rank FROM windlass.jobs
        WHERE stage = 'pending' AND status = 'pending' ORDER BY queue, sort_priority, rank, id LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.sort_priority, next.rank FROM level CROSS JOIN LATERAL (
        SELECT job.queue, job.sort_priority, job.rank FROM windlass.jobs AS job
        WHERE job.stage = 'pending' AND job.status = 'pending'
        AND (job.queue, job.sort_priority) > (level.queue, level.sort_priority)
        ORDER BY job.queue, job.sort_priority, job.rank, job.id LIMIT 1
    ) AS next
)
SELECT level.queue, level.sort_priority, level.rank
FROM level LEFT JOIN windlass.watermarks AS watermark ON watermark.queue = level.queue AND watermark.sort_priority = level.sort_priority
WHERE watermark.rank IS NULL OR level.rank < watermark.rank
