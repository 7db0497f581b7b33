-- name: acquire_leadership
-- Acquire leadership if it is free, or renew ours. Of two concurrent candidates the second waits for the first, and
-- loses. The term grows with each new leadership, also of the same candidate.
INSERT INTO windlass.leadership AS leader (one, holder, term, expires_at) VALUES (1, :holder, 1, :now + :length::bigint)
ON CONFLICT (one) DO UPDATE SET
    holder = excluded.holder,
    term = leader.term + CASE WHEN leader.holder = excluded.holder AND leader.expires_at > :now THEN 0 ELSE 1 END,
    expires_at = excluded.expires_at
WHERE leader.holder IS NULL OR leader.holder = excluded.holder OR leader.expires_at <= :now
RETURNING term

-- name: leader
SELECT holder FROM windlass.leadership WHERE holder IS NOT NULL AND expires_at > :now

-- name: resign
-- Give up leadership; the term stays, so that the next one is larger.
UPDATE windlass.leadership SET holder = NULL WHERE holder = :holder
