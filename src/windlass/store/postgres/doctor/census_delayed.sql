-- Delayed jobs by queue and type, and whether they are due, among the first :limit.
SELECT queue, type, run_at <= :now, count(*) FROM (
    SELECT queue, type, run_at FROM windlass.jobs
    WHERE status IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM windlass.due_watermark)
    ORDER BY run_at, id LIMIT :limit
) AS next
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
