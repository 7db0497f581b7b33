-- A type at the head of a queue that is not known.
SELECT head.type FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
WHERE head.type <> ALL(:known::text[]) LIMIT 1
