-- Every queue that was spoken of, or holds jobs.
SELECT name FROM windlass_queues
UNION SELECT queue FROM windlass_jobs
UNION SELECT queue FROM windlass_tallies WHERE jobs > 0
ORDER BY 1
