-- name: key_holders
-- The holders of the keys [[queue, hash], …], and their status; NULL: the job has finished, and its window keeps the key.
SELECT held.queue, held.hash, held.job, job.status
FROM json_each(:keys) AS wanted
CROSS JOIN windlass_idempotency_keys AS held ON held.queue = wanted.value ->> 0 AND held.hash = wanted.value ->> 1
LEFT JOIN windlass_jobs AS job ON job.id = held.job
WHERE held.until IS NULL OR held.until > :now

-- name: set_key_holder
INSERT INTO windlass_idempotency_keys (queue, hash, job) VALUES (?, ?, ?)
ON CONFLICT (queue, hash) DO UPDATE SET job = excluded.job, until = NULL

-- name: take_key
-- Take a key if it is free, its window is over, or this job already has it.
INSERT INTO windlass_idempotency_keys (queue, hash, job) VALUES (:queue, :hash, :job)
ON CONFLICT (queue, hash) DO UPDATE SET job = excluded.job, until = NULL
WHERE until <= :now OR job = excluded.job

-- name: free_key
-- Unless another job has taken the key since.
DELETE FROM windlass_idempotency_keys WHERE queue = ? AND hash = ? AND job = ?

-- name: keep_key
-- The job has finished; its window keeps the key.
UPDATE windlass_idempotency_keys SET until = ? WHERE queue = ? AND hash = ? AND job = ?
