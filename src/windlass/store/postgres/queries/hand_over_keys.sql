-- These jobs have these keys now, whoever had them before.
UPDATE windlass.keys AS held SET job = taken.job, until = NULL
FROM unnest(:queues::text[], :hashes::text[], :jobs::uuid[]) AS taken (queue, hash, job)
WHERE held.queue = taken.queue AND held.hash = taken.hash AND held.job <> taken.job
