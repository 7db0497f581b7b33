-- name: dependents
-- The dependents of these parents, with the parent's result if they take it; one index seek for a parent without dependents. The
-- queue of a dependent that has finished is NULL.
SELECT dependency.parent, dependency.child, dependency.when_ended, child_job.queue, child_job.concurrency_key,
    CASE WHEN instr(coalesce(child_job.result_params, finished.result_params), dependency.parent) > 0 THEN
        json_array(dependency.parent, (SELECT result FROM windlass_history AS done WHERE done.id = dependency.parent))
    END
FROM json_each(:parents) AS parent CROSS JOIN windlass_dependencies AS dependency ON dependency.parent = parent.value
LEFT JOIN windlass_jobs AS child_job ON child_job.id = dependency.child
LEFT JOIN windlass_history AS finished ON child_job.id IS NULL AND finished.id = dependency.child

-- name: release_dependents
-- For [[dependent, number of ended parents, their results as [parent, result], …], …]. A dependent without other pending parents is
-- due after its own delay (core/jobs/dependencies.py, due_after); with a key, it waits for the key.
UPDATE windlass_jobs
SET parent_results = CASE
        WHEN done.value ->> 2 IS NULL THEN parent_results
        WHEN parent_results IS NULL THEN '[' || (done.value ->> 2) || ']'
        ELSE substr(parent_results, 1, length(parent_results) - 1) || ',' || (done.value ->> 2) || ']'
    END,
    pending_parents = pending_parents - (done.value ->> 1),
    status = CASE
        WHEN pending_parents > done.value ->> 1 THEN status
        WHEN max(iif(run_at > created_at, run_at, 0), :now + delay_after_parents) > :now THEN 'scheduled'
        WHEN concurrency_key IS NOT NULL THEN 'blocked'
        ELSE 'pending'
    END,
    reason = CASE
        WHEN pending_parents > done.value ->> 1 THEN reason
        WHEN max(iif(run_at > created_at, run_at, 0), :now + delay_after_parents) <= :now AND concurrency_key IS NOT NULL
            THEN 'waits for its concurrency key'
    END,
    run_at = CASE
        WHEN pending_parents > done.value ->> 1 THEN run_at
        ELSE max(iif(run_at > created_at, run_at, 0), :now + delay_after_parents)
    END,
    rank = CASE
        WHEN pending_parents > done.value ->> 1 THEN rank
        ELSE max(iif(run_at > created_at, run_at, 0), :now + delay_after_parents)
    END,
    updated_at = :now
FROM json_each(:releases) AS done WHERE windlass_jobs.id = done.value ->> 0

-- name: release_cancelled_dependents
-- For dependents that were cancelled meanwhile: a retry needs the results and the number of pending parents.
UPDATE windlass_history
SET parent_results = CASE
        WHEN done.value ->> 2 IS NULL THEN parent_results
        WHEN parent_results IS NULL THEN '[' || (done.value ->> 2) || ']'
        ELSE substr(parent_results, 1, length(parent_results) - 1) || ',' || (done.value ->> 2) || ']'
    END,
    pending_parents = pending_parents - (done.value ->> 1)
FROM json_each(:releases) AS done WHERE windlass_history.id = done.value ->> 0 AND windlass_history.pending_parents > 0

-- name: drop_dependencies
DELETE FROM windlass_dependencies WHERE parent IN (SELECT value FROM json_each(:parents))

-- name: drop_ended_dependencies
-- For parents that did not complete: drop only what waited for their end. A retry needs the other dependencies.
DELETE FROM windlass_dependencies WHERE parent IN (SELECT value FROM json_each(:parents)) AND when_ended
