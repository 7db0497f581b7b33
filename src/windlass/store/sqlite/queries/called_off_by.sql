-- Who was called off because this one ended, who because of that, and so on: the nearest first, with the queue and the key of
-- each, and {parent: status} of those for whom it would wait in vain. One that somebody cancelled himself is not among them,
-- nor who was called off because of that.
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
SELECT child, queue, idempotency_key, (
    SELECT json_group_object(edge.parent, coalesce(over.status, 'dead'))
    FROM json_each(gone.parents) AS one CROSS JOIN windlass_edges AS edge ON edge.parent = one.value AND edge.child = gone.id
    LEFT JOIN windlass_history AS over ON over.id = edge.parent
    WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs AS live WHERE live.id = edge.parent)
)
FROM down CROSS JOIN windlass_history AS gone ON gone.id = child
ORDER BY depth, child
