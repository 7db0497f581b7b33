-- Waiting jobs whose time to start is over, the longest ago first. What is being claimed or changed at this moment is
-- left alone.
SELECT id::text FROM windlass.jobs AS job
WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
ORDER BY job.expires_at, job.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
