-- name: lock_parents
-- Lock live parents, in order, so that none ends before the commit. A parent that ends while the statement waits for its
-- lock is not returned.
SELECT id::text, status, queue FROM windlass.jobs AS job WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR NO KEY UPDATE

-- name: add_dependencies
INSERT INTO windlass.dependencies (parent, child, when_ended)
SELECT dependency.parent, dependency.child, dependency.when_ended <> 0 FROM unnest(
    string_to_array(:parents, ',')::uuid[], string_to_array(:children, ',')::uuid[],
    string_to_array(:when_ended, ',')::integer[]
) AS dependency (parent, child, when_ended)

-- name: set_has_dependents
-- Record that other jobs wait for these, which the caller has locked or inserted.
UPDATE windlass.jobs SET has_dependents = true WHERE id = ANY (:ids::uuid[]) AND NOT has_dependents

-- name: completed_retention
SELECT name, keep_completed FROM windlass.queues WHERE name = ANY (:queues::text[])
