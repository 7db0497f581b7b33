-- Who coordinates, if anybody does.
SELECT holder FROM windlass.office WHERE holder IS NOT NULL AND expires_at > :now
