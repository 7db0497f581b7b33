-- Ask running jobs, locked by the caller, to stop. By ids, not by a scan of all running jobs.
UPDATE windlass.jobs SET cancel_requested = true, reason = :reason::text, updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status || '' = 'running'
