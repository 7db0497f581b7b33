-- Take an idempotency key that nobody holds, whose window is over, or whose window is this job's own.
INSERT INTO windlass_keys (queue, hash, job) VALUES (:queue, :hash, :job)
ON CONFLICT (queue, hash) DO UPDATE SET job = excluded.job, until = NULL
WHERE until <= :now OR job = excluded.job
