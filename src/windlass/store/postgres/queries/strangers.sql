-- Whether there is a type at the head of any queue that is none of the known ones; from the floors on.
SELECT head.type FROM windlass.floors AS place CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
WHERE head.type <> ALL(:known::text[]) LIMIT 1
