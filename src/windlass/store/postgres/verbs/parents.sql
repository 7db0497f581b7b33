-- The parents of a job, live ones first.
SELECT id::text, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass.jobs
WHERE id = ANY (:ids::uuid[])
UNION ALL
SELECT id::text, status, finished_at, run_at, worker FROM windlass.history WHERE id = ANY (:ids::uuid[])
LIMIT :most_named::bigint
