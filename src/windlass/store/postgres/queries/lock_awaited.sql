-- The parents for which these cancelled jobs would wait again, as far as they have not ended, each locked, in order: none
-- of them ends before that is stored.
SELECT FROM windlass.jobs AS job WHERE id = ANY (ARRAY(
    SELECT named.parent::uuid FROM windlass.history AS child
    CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
    WHERE child.id = ANY (:ids::uuid[]) AND child.waits > 0
)) ORDER BY job.id FOR NO KEY UPDATE
