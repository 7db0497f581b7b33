-- The holders of these keys.
SELECT held.queue, held.hash, held.job::text
FROM unnest(:queues::text[], :hashes::text[]) AS wanted (queue, hash)
JOIN windlass.idempotency_keys AS held ON held.queue = wanted.queue AND held.hash = wanted.hash
