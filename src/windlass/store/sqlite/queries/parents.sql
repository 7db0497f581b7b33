-- The parents of a job, as far as they are kept, with what they do; those that have not ended first.
SELECT id, status, coalesce(claimed_at, updated_at), run_at, worker FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, status, finished_at, run_at, worker FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
LIMIT :most_named
