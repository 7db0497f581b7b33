-- Pending jobs by queue and type, among the first :limit of each sort priority.
SELECT place.queue, head.type, count(*) FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
GROUP BY place.queue, head.type ORDER BY place.queue, head.type
