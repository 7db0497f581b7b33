-- Who was called off because this one ended, who because of that, and so on: the nearest first, with the parent, the queue
-- and the key of each. One that somebody cancelled himself is not among them, nor who was called off because of that.
WITH RECURSIVE down (child, parent, depth) AS (
    SELECT edge.child, edge.parent, 0
    FROM windlass_edges AS edge CROSS JOIN windlass_history AS gone ON gone.id = edge.child
    WHERE edge.parent = :id AND gone.status = 'cancelled'
    AND gone.reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled')
    UNION
    SELECT edge.child, edge.parent, down.depth + 1
    FROM down CROSS JOIN windlass_edges AS edge ON edge.parent = down.child
    CROSS JOIN windlass_history AS gone ON gone.id = edge.child
    WHERE gone.status = 'cancelled'
    AND gone.reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled')
)
SELECT child, down.parent, queue, idempotency_key FROM down CROSS JOIN windlass_history AS gone ON gone.id = child
ORDER BY depth, child
