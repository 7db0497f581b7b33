-- Lock expired waiting jobs, the longest expired first; locked ones are skipped.
SELECT id::text FROM windlass.jobs AS job
WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
ORDER BY job.expires_at, job.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
