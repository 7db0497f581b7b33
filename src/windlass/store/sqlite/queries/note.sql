-- Keep a job's progress and log.
INSERT INTO windlass_notes (job, progress, logs) VALUES (:job, :progress, :logs)
ON CONFLICT (job) DO UPDATE SET progress = excluded.progress, logs = excluded.logs
