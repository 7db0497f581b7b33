-- Parents have completed: [[heir, how many of its parents, their results that it takes as [parent, result], …], …]. Who waits
-- for nobody else is due, at the earliest after its own delay (see core/chain.py, due_after); with a key it goes to the line.
UPDATE windlass_jobs
SET inputs = CASE
        WHEN gift.value ->> 2 IS NULL THEN inputs
        WHEN inputs IS NULL THEN '[' || (gift.value ->> 2) || ']'
        ELSE substr(inputs, 1, length(inputs) - 1) || ',' || (gift.value ->> 2) || ']'
    END,
    waits = waits - (gift.value ->> 1),
    status = CASE
        WHEN waits > gift.value ->> 1 THEN status
        WHEN max(iif(run_at > created_at, run_at, 0), :now + lag) > :now THEN 'scheduled'
        WHEN concurrency_key IS NOT NULL THEN 'blocked'
        ELSE 'pending'
    END,
    reason = CASE
        WHEN waits > gift.value ->> 1 THEN reason
        WHEN max(iif(run_at > created_at, run_at, 0), :now + lag) <= :now AND concurrency_key IS NOT NULL THEN 'in line for its key'
    END,
    run_at = CASE WHEN waits > gift.value ->> 1 THEN run_at ELSE max(iif(run_at > created_at, run_at, 0), :now + lag) END,
    rank = CASE WHEN waits > gift.value ->> 1 THEN rank ELSE max(iif(run_at > created_at, run_at, 0), :now + lag) END,
    updated_at = :now
FROM json_each(:gifts) AS gift WHERE windlass_jobs.id = gift.value ->> 0
