-- Take an idempotency key that nobody holds; changes nothing if somebody does.
INSERT INTO windlass_keys (queue, hash, job) VALUES (:queue, :hash, :job)
ON CONFLICT (queue, hash) DO NOTHING
