-- Who waits for these, who waits for those, and so on: each with one that it waits for. One that has ended already has
-- taken those behind it along. The table of edges leads, step by step.
WITH RECURSIVE down (child, because) AS (
    SELECT edge.child, edge.parent FROM windlass.edges AS edge CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs WHERE id = edge.child OFFSET 0
    ) AS heir
    WHERE edge.parent = ANY (:ids::uuid[])
    UNION
    SELECT edge.child, edge.parent FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.edges WHERE parent = down.child OFFSET 0
    ) AS edge CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs WHERE id = edge.child OFFSET 0
    ) AS heir
)
SELECT DISTINCT ON (child) child::text, because::text FROM down ORDER BY child, because
