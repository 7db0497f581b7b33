-- These have completed: who waits for them gets their results, where it takes them. Who waits for nobody else is due, at the
-- earliest after its own delay; with a key it goes to the line.
UPDATE windlass_jobs
SET inputs = CASE
        WHEN gift.results = '[]' THEN inputs
        WHEN inputs IS NULL THEN gift.results
        ELSE substr(inputs, 1, length(inputs) - 1) || ',' || substr(gift.results, 2)
    END,
    waits = waits - gift.ended,
    status = CASE
        WHEN waits > gift.ended THEN status
        WHEN max(run_at, :now + lag) > :now THEN 'scheduled'
        WHEN concurrency_key IS NOT NULL THEN 'blocked'
        ELSE 'pending'
    END,
    reason = CASE
        WHEN waits > gift.ended THEN reason
        WHEN max(run_at, :now + lag) <= :now AND concurrency_key IS NOT NULL THEN 'in line for its key'
    END,
    run_at = CASE WHEN waits > gift.ended THEN run_at ELSE max(run_at, :now + lag) END,
    rank = CASE WHEN waits > gift.ended THEN rank ELSE max(run_at, :now + lag) END,
    updated_at = :now
FROM (
    SELECT edge.child AS child, count(*) AS ended,
        json_group_array(json_array(edge.parent, done.result)) FILTER (WHERE instr(one.takes, edge.parent) > 0) AS results
    FROM json_each(:parents) AS parent CROSS JOIN windlass_edges AS edge ON edge.parent = parent.value
    CROSS JOIN windlass_history AS done ON done.id = edge.parent
    CROSS JOIN windlass_jobs AS one ON one.id = edge.child
    GROUP BY edge.child
) AS gift
WHERE windlass_jobs.id = gift.child
