-- Raise the next watermarks, in order, up to :rank or to the lowest pending rank. Returns how many were looked at,
-- the last of them, and how many were raised. The watermark of an idle queue is raised only when it is far behind.
-- `returns` is compared with this statement's snapshot: if a job was put back since, the watermark stays. Locked rows
-- are skipped.
WITH portion AS MATERIALIZED (
    SELECT queue, sort_priority, rank, returns FROM windlass.watermarks
    WHERE (queue, sort_priority) > (:queue::text, :sort_priority::integer) ORDER BY queue, sort_priority LIMIT :limit::integer
), busy AS MATERIALIZED (
    SELECT DISTINCT queue FROM windlass.meters WHERE interval_start >= :since::bigint
), seen AS MATERIALIZED (
    SELECT queue, sort_priority, returns, rank AS watermark, least(:rank::bigint, (
        SELECT job.rank FROM windlass.jobs AS job
        WHERE job.queue = portion.queue AND job.sort_priority = portion.sort_priority AND job.status = 'pending'
            AND job.rank >= portion.rank
        ORDER BY job.rank, job.id LIMIT 1
    )) AS rank
    FROM portion WHERE rank < :idle::bigint OR (rank < :rank::bigint AND queue IN (SELECT queue FROM busy))
), held AS MATERIALIZED (
    SELECT place.queue, place.sort_priority, place.returns, seen.returns AS known, seen.rank
    FROM seen JOIN windlass.watermarks AS place ON place.queue = seen.queue AND place.sort_priority = seen.sort_priority
    WHERE seen.rank > seen.watermark
    FOR NO KEY UPDATE OF place SKIP LOCKED
), raised AS (
    UPDATE windlass.watermarks AS watermark SET rank = held.rank FROM held
    WHERE watermark.queue = held.queue AND watermark.sort_priority = held.sort_priority AND held.returns = held.known
        AND watermark.rank < held.rank
    RETURNING 1
)
SELECT (SELECT count(*) FROM portion), last.queue, last.sort_priority, (SELECT count(*) FROM raised)
FROM (SELECT queue, sort_priority FROM portion ORDER BY queue DESC, sort_priority DESC LIMIT 1) AS last
