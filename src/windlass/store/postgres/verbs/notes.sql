-- Progress and logs of jobs.
SELECT job::text, progress, logs FROM windlass.notes WHERE job = ANY(:jobs::uuid[])
