-- name: held
SELECT id, attempt, queue, claim FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE worker = :runner AND status = 'running'

-- name: counts
-- Jobs by queue and status: live ones by the partial index of each status, finished ones by their stored counts.
SELECT queue, 'pending', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_pending
WHERE status = 'pending' GROUP BY queue
UNION ALL
SELECT queue, status, count(*) FROM windlass_jobs INDEXED BY windlass_jobs_due
WHERE status IN ('scheduled', 'failed') GROUP BY queue, status
UNION ALL
SELECT queue, 'running', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_held
WHERE status = 'running' GROUP BY queue
UNION ALL
SELECT queue, 'blocked', count(*) FROM windlass_jobs INDEXED BY windlass_jobs_blocked
WHERE status = 'blocked' GROUP BY queue
UNION ALL
SELECT queue, status, jobs FROM windlass_history_counts WHERE jobs <> 0
