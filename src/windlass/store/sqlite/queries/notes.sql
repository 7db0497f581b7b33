-- What is kept of a job's progress and log.
SELECT progress, logs FROM windlass_notes WHERE job = :job
