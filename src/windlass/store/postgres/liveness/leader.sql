-- The current leader.
SELECT holder FROM windlass.leadership WHERE holder IS NOT NULL AND expires_at > :now
