-- The parents that a cancelled job would wait for in vain: they ended without completing, or are dropped.
SELECT dependency.parent::text FROM windlass.history AS child
CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
CROSS JOIN LATERAL (
    SELECT parent FROM windlass.dependencies WHERE parent = named.parent::uuid AND child = :id::uuid OFFSET 0
) AS dependency
WHERE child.id = :id::uuid
AND NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = dependency.parent OFFSET 0)
