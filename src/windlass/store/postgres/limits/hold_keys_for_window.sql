-- The jobs have ended; their keys stay taken for their windows.
UPDATE windlass.idempotency_keys AS held SET until = :now + kept.length
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[], :lengths::bigint[]) AS kept (queue, hash, job, length)
WHERE held.queue = kept.queue AND held.hash = kept.hash AND held.job = kept.job
