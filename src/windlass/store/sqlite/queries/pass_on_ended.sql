-- The same for an heir that was called off meanwhile: a retry finds what it needs.
UPDATE windlass_history
SET inputs = CASE
        WHEN gift.results = '[]' THEN inputs
        WHEN inputs IS NULL THEN gift.results
        ELSE substr(inputs, 1, length(inputs) - 1) || ',' || substr(gift.results, 2)
    END,
    waits = waits - gift.ended
FROM (
    SELECT edge.child AS child, count(*) AS ended,
        json_group_array(json_array(edge.parent, done.result)) FILTER (WHERE instr(one.takes, edge.parent) > 0) AS results
    FROM json_each(:parents) AS parent CROSS JOIN windlass_edges AS edge ON edge.parent = parent.value
    CROSS JOIN windlass_history AS done ON done.id = edge.parent
    CROSS JOIN windlass_history AS one ON one.id = edge.child
    GROUP BY edge.child
) AS gift
WHERE windlass_history.id = gift.child
