-- The same, of those who may have to give way: two who want to replace one job do so one after the other.
SELECT held.queue, held.hash, held.job::text
FROM unnest(:queues::text[], :hashes::text[]) AS wanted (queue, hash)
JOIN windlass.keys AS held ON held.queue = wanted.queue AND held.hash = wanted.hash
ORDER BY held.queue, held.hash FOR UPDATE OF held
