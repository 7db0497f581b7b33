-- The lowest rank that is pending at or above the floor; none: the place is empty.
SELECT rank FROM windlass.jobs
WHERE queue = :queue::text AND urgency = :urgency::integer AND status = 'pending' AND rank >= :floor::bigint
ORDER BY rank, id LIMIT 1
