-- The gates of these keys, in one order; those that somebody else has in hand, or that nobody has made yet, are missing.
SELECT key, credit, period, at, :now FROM windlass.gates
WHERE queue = :queue::text AND key = ANY(:keys::text[]) ORDER BY key COLLATE "C" FOR NO KEY UPDATE SKIP LOCKED
