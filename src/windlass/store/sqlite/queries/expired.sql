-- Waiting jobs whose time to start is over, the longest ago first.
SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_expiring
WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running' ORDER BY expires_at, id LIMIT :limit
