-- How many of these attempts are running right now: [[id, attempt, started_after, result], …].
SELECT count(*) FROM json_each(:batch) AS s
CROSS JOIN windlass_jobs AS job
ON job.id = s.value ->> 0 AND job.attempt = s.value ->> 1 AND job.status = 'running'
