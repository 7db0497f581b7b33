-- The parents that a cancelled job would wait for in vain: they have ended, and did not complete, or are gone.
SELECT edge.parent FROM windlass_history AS child, json_each(child.parents) AS parent
CROSS JOIN windlass_edges AS edge ON edge.parent = parent.value AND edge.child = child.id
WHERE child.id = :id AND NOT EXISTS (SELECT 1 FROM windlass_jobs AS live WHERE live.id = edge.parent)
