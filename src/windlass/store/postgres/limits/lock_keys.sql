-- Lock keys whose holders may have to be replaced: two replacements of one job are serialized.
SELECT held.queue, held.hash, held.job::text
FROM unnest(:queues::text[], :hashes::text[]) AS wanted (queue, hash)
JOIN windlass.idempotency_keys AS held ON held.queue = wanted.queue AND held.hash = wanted.hash
ORDER BY held.queue, held.hash FOR UPDATE OF held
