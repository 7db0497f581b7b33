-- Pending jobs by queue and type, among the next :limit of each urgency; from the floors on.
SELECT place.queue, head.type, count(*) FROM windlass.floors AS place CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
GROUP BY place.queue, head.type ORDER BY place.queue, head.type
