-- Nothing is pending below :rank: true when it was looked at, and nobody has put a job back since.
UPDATE windlass.floors SET rank = :rank::bigint
WHERE queue = :queue::text AND urgency = :urgency::integer AND returns = :returns::bigint AND rank < :rank::bigint
