-- What is kept of the progress and the logs of jobs.
SELECT job::text, progress, logs FROM windlass.notes WHERE job = ANY(:jobs::uuid[])
