-- The parents that a cancelled job would wait for in vain: they have ended, and did not complete, or are gone.
SELECT edge.parent::text FROM windlass.history AS child
CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
CROSS JOIN LATERAL (
    SELECT parent FROM windlass.edges WHERE parent = named.parent::uuid AND child = :id::uuid OFFSET 0
) AS edge
WHERE child.id = :id::uuid
AND NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = edge.parent OFFSET 0)
