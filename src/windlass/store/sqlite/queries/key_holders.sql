-- Who has these keys, [[queue, hash], …], and in which status; NULL: a job that ended within its window.
SELECT held.queue, held.hash, held.job, job.status
FROM json_each(:keys) AS wanted
CROSS JOIN windlass_keys AS held ON held.queue = wanted.value ->> 0 AND held.hash = wanted.value ->> 1
LEFT JOIN windlass_jobs AS job ON job.id = held.job
WHERE held.until IS NULL OR held.until > :now
