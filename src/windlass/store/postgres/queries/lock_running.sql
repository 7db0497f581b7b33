-- Those of these jobs that are running, and in which attempt: locked in one order, as everybody locks jobs.
SELECT id::text, attempt FROM windlass.jobs
WHERE id = ANY(:ids::uuid[]) AND status = 'running' ORDER BY id FOR UPDATE
