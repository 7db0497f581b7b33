-- Jobs were put back to where they may be below the floor; `returns` tells whoever is just raising it.
INSERT INTO windlass.floors AS floor (queue, urgency, rank, returns)
SELECT queue, urgency, min(rank), 1 FROM unnest(:queues::text[], :urgencies::integer[], :ranks::bigint[])
    AS put (queue, urgency, rank)
GROUP BY queue, urgency ORDER BY queue, urgency
ON CONFLICT (queue, urgency) DO UPDATE SET rank = least(floor.rank, excluded.rank), returns = floor.returns + 1
