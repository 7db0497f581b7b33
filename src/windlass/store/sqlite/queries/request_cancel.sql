-- Ask a running job to stop.
UPDATE windlass_jobs SET cancel_requested = 1, reason = :reason, updated_at = :now WHERE id = :id AND status = 'running'
