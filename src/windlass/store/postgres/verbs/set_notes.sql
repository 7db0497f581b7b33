-- Write progress and logs.
INSERT INTO windlass.notes (job, progress, logs)
SELECT * FROM unnest(:jobs::uuid[], :progress::text[], :logs::text[])
ON CONFLICT (job) DO UPDATE SET progress = excluded.progress, logs = excluded.logs
