-- After a general silence of more than half a lease: one lease of grace for everybody, once until it is renewed.
UPDATE windlass_leases SET expires_at = max(expires_at, :now + length), graced = 1
WHERE boot = :boot AND :silence > length / 2 AND graced = 0
