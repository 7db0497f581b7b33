-- How long the first pending job of each queue has waited, by the head of each priority.
SELECT place.queue, greatest(0, :now - min(head.rank))
FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT rank FROM windlass.jobs
    WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT 1
) AS head
GROUP BY place.queue
