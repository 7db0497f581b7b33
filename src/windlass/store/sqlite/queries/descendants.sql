-- Who waits for these, who waits for those, and so on: each with one that it waits for. One that has ended already has taken
-- those behind it along.
WITH RECURSIVE down (child, because) AS (
    SELECT edge.child, edge.parent
    FROM json_each(:ids) AS gone CROSS JOIN windlass_edges AS edge ON edge.parent = gone.value
    CROSS JOIN windlass_jobs AS heir ON heir.id = edge.child
    UNION
    SELECT edge.child, edge.parent FROM down CROSS JOIN windlass_edges AS edge ON edge.parent = down.child
    CROSS JOIN windlass_jobs AS heir ON heir.id = edge.child
)
SELECT child, min(because) FROM down GROUP BY child
