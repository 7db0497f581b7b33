-- Jobs cancelled because one of these ended, and so on down: the nearest first, each with its queue, its key, and
-- {parent: status} of its failed parents. Jobs that an operator cancelled are not among them, nor those cancelled
-- because of that.
WITH RECURSIVE down (child, queue, key, parents, depth) AS (
    SELECT dependency.child, gone.queue, gone.idempotency_key, gone.parents, 0
    FROM windlass.dependencies AS dependency CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = dependency.child AND status = 'cancelled'
        AND reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled') OFFSET 0
    ) AS gone
    WHERE dependency.parent = ANY (:ids::uuid[])
    UNION
    SELECT dependency.child, gone.queue, gone.idempotency_key, gone.parents, down.depth + 1
    FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.dependencies WHERE parent = down.child OFFSET 0
    ) AS dependency CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = dependency.child AND status = 'cancelled'
        AND reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled') OFFSET 0
    ) AS gone
)
SELECT child::text, queue, key, (
    SELECT coalesce(json_object_agg(dependency.parent, coalesce(over.status, 'dead')), '{}')
    FROM json_array_elements_text(down.parents::json) AS named (parent) CROSS JOIN LATERAL (
        SELECT parent FROM windlass.dependencies WHERE parent = named.parent::uuid AND child = down.child OFFSET 0
    ) AS dependency LEFT JOIN LATERAL (
        SELECT status FROM windlass.history WHERE id = dependency.parent OFFSET 0
    ) AS over ON true
    WHERE NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = dependency.parent OFFSET 0)
)::text AS vain
FROM down ORDER BY depth, child
