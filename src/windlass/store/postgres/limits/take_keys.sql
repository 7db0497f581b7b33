-- Take the keys that are free, in order, to avoid deadlocks.
INSERT INTO windlass.idempotency_keys (queue, hash, job)
SELECT queue, hash, job FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
ORDER BY queue, hash
ON CONFLICT (queue, hash) DO NOTHING
RETURNING queue, hash
