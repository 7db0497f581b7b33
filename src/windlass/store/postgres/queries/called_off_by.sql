-- Who was called off because one of these ended, who because of that, and so on: the nearest first, with the parent, the
-- queue and the key of each. One that somebody cancelled himself is not among them, nor who was called off because of that.
WITH RECURSIVE down (child, parent, queue, key, depth) AS (
    SELECT edge.child, edge.parent, gone.queue, gone.idempotency_key, 0
    FROM windlass.edges AS edge CROSS JOIN LATERAL (
        SELECT queue, idempotency_key FROM windlass.history
        WHERE id = edge.child AND status = 'cancelled'
        AND reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled') OFFSET 0
    ) AS gone
    WHERE edge.parent = ANY (:ids::uuid[])
    UNION
    SELECT edge.child, edge.parent, gone.queue, gone.idempotency_key, down.depth + 1
    FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.edges WHERE parent = down.child OFFSET 0
    ) AS edge CROSS JOIN LATERAL (
        SELECT queue, idempotency_key FROM windlass.history
        WHERE id = edge.child AND status = 'cancelled'
        AND reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled') OFFSET 0
    ) AS gone
)
SELECT child::text, parent::text, queue, key FROM down ORDER BY depth, child
