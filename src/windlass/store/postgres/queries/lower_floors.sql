-- Jobs were put back to where they may be below the floor; `returns` tells whoever is just raising it. A place that is
-- new begins at the very bottom: somebody else may be putting a job there at this moment, at a lower rank.
INSERT INTO windlass.floors AS floor (queue, urgency, rank, returns)
SELECT queue, urgency, 0, 1 FROM unnest(:queues::text[], :urgencies::integer[], :ranks::bigint[])
    AS put (queue, urgency, rank)
GROUP BY queue, urgency ORDER BY queue, urgency
ON CONFLICT (queue, urgency) DO UPDATE SET rank = least(floor.rank, (
    SELECT min(rank) FROM unnest(:queues::text[], :urgencies::integer[], :ranks::bigint[]) AS put (queue, urgency, rank)
    WHERE put.queue = floor.queue AND put.urgency = floor.urgency
)), returns = floor.returns + 1
