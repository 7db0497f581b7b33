-- Ask running jobs to stop. The caller has locked them. Found by their ids, not by walking through all that run.
UPDATE windlass.jobs SET cancel_requested = true, reason = :reason::text, updated_at = :now
WHERE id = ANY (:ids::uuid[]) AND status || '' = 'running'
