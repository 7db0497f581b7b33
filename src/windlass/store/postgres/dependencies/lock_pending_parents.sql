-- Lock the live parents that these cancelled jobs would wait for again, in order: none ends before the commit.
SELECT FROM windlass.jobs AS job WHERE id = ANY (ARRAY(
    SELECT named.parent::uuid FROM windlass.history AS child
    CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
    WHERE child.id = ANY (:ids::uuid[]) AND child.pending_parents > 0
)) ORDER BY job.id FOR NO KEY UPDATE
