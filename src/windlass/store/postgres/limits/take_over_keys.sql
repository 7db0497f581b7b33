-- Take keys whose window is over or, for a retry, is the job's own. By the keys, not by a scan of all windows.
UPDATE windlass.idempotency_keys AS held SET job = wanted.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS wanted (queue, hash, job)
WHERE held.queue = wanted.queue AND held.hash = wanted.hash AND held.until + 0 IS NOT NULL
AND (held.until + 0 <= :now OR (:own::boolean AND held.job = wanted.job))
RETURNING held.queue, held.hash
