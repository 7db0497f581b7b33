-- The attempts of finished jobs.
SELECT id::text, status, attempt, attempts, worker, claimed_at, started_at, finished_at FROM windlass.history
WHERE id = ANY (:ids::uuid[])
