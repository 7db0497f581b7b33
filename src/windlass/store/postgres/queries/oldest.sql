-- How long the first pending job of each queue has waited: one look at the head of each priority, from its floor on.
SELECT place.queue, greatest(0, :now - min(head.rank))
FROM windlass.floors AS place CROSS JOIN LATERAL (
    SELECT rank FROM windlass.jobs
    WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT 1
) AS head
GROUP BY place.queue
