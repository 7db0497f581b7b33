-- Take the keys that nobody has. Sorted, so that two who want the same ones do not wait for each other in a circle.
INSERT INTO windlass.keys (queue, hash, job)
SELECT queue, hash, job FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
ORDER BY queue, hash
ON CONFLICT (queue, hash) DO NOTHING
RETURNING queue, hash
