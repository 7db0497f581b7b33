-- Jobs that wait for their time by queue and type, and whether it has come, among the :limit that are due first.
SELECT queue, type, run_at <= :now, count(*) FROM (
    SELECT queue, type, run_at FROM windlass.jobs
    WHERE status IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM windlass.due_floor)
    ORDER BY run_at, id LIMIT :limit
) AS next
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
