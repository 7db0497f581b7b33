-- Jobs were put back: lower their watermarks, and increment `returns` for a concurrent raise. A new watermark begins
-- at 0: a concurrent transaction may put a job there at a lower rank.
INSERT INTO windlass.watermarks AS watermark (queue, sort_priority, rank, returns)
SELECT queue, sort_priority, 0, 1 FROM unnest(:queues::text[], :sort_priorities::integer[], :ranks::bigint[])
    AS put (queue, sort_priority, rank)
GROUP BY queue, sort_priority ORDER BY queue, sort_priority
ON CONFLICT (queue, sort_priority) DO UPDATE SET rank = least(watermark.rank, (
    SELECT min(rank) FROM unnest(:queues::text[], :sort_priorities::integer[], :ranks::bigint[]) AS put (queue, sort_priority, rank)
    WHERE put.queue = watermark.queue AND put.sort_priority = watermark.sort_priority
)), returns = watermark.returns + 1
