-- Take keys whose window is over, or, for a retry, whose window is the job's own.
UPDATE windlass.keys AS held SET job = wanted.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
WHERE held.queue = wanted.queue AND held.hash = wanted.hash AND held.until IS NOT NULL
AND (held.until <= :now OR (:own::boolean AND held.job = wanted.job))
RETURNING held.queue, held.hash
