-- Free the keys of jobs that ended; a key that another job has taken since stays with it.
DELETE FROM windlass.keys AS held
USING unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS freed (queue, hash, job)
WHERE held.queue = freed.queue AND held.hash = freed.hash AND held.job = freed.job
