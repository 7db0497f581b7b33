-- Give these keys to these jobs, whichever jobs had them.
UPDATE windlass.idempotency_keys AS held SET job = taken.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS taken (queue, hash, job)
WHERE held.queue = taken.queue AND held.hash = taken.hash AND held.job <> taken.job
