-- Jobs that wait for their time by queue and type, and whether it has come, among the :limit that are due first.
SELECT queue, type, run_at <= :now AS due, count(*) FROM (
    SELECT queue, type, run_at FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') ORDER BY run_at, id LIMIT :limit
) GROUP BY queue, type, due
