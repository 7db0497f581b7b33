-- Who was called off because one of these ended, who because of that, and so on: the nearest first, with the queue and the
-- key of each, and {parent: status} of those for whom it would wait in vain. One that somebody cancelled himself is not
-- among them, nor who was called off because of that.
WITH RECURSIVE down (child, queue, key, parents, depth) AS (
    SELECT edge.child, gone.queue, gone.idempotency_key, gone.parents, 0
    FROM windlass.edges AS edge CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = edge.child AND status = 'cancelled'
        AND reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled') OFFSET 0
    ) AS gone
    WHERE edge.parent = ANY (:ids::uuid[])
    UNION
    SELECT edge.child, gone.queue, gone.idempotency_key, gone.parents, down.depth + 1
    FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.edges WHERE parent = down.child OFFSET 0
    ) AS edge CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = edge.child AND status = 'cancelled'
        AND reason IN ('its parent ' || edge.parent || ' is dead', 'its parent ' || edge.parent || ' is cancelled') OFFSET 0
    ) AS gone
)
SELECT child::text, queue, key, (
    SELECT coalesce(json_object_agg(edge.parent, coalesce(over.status, 'dead')), '{}')
    FROM json_array_elements_text(down.parents::json) AS named (parent) CROSS JOIN LATERAL (
        SELECT parent FROM windlass.edges WHERE parent = named.parent::uuid AND child = down.child OFFSET 0
    ) AS edge LEFT JOIN LATERAL (
        SELECT status FROM windlass.history WHERE id = edge.parent OFFSET 0
    ) AS over ON true
    WHERE NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = edge.parent OFFSET 0)
)::text AS vain
FROM down ORDER BY depth, child
