-- Release the keys of ended jobs, unless another job has taken them since.
DELETE FROM windlass.idempotency_keys AS held
USING unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS freed (queue, hash, job)
WHERE held.queue = freed.queue AND held.hash = freed.hash AND held.job = freed.job
