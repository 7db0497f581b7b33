-- A new job has this key now, whoever had it before.
INSERT INTO windlass_keys (queue, hash, job) VALUES (?, ?, ?)
ON CONFLICT (queue, hash) DO UPDATE SET job = excluded.job, until = NULL
