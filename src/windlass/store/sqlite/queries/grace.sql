-- After a general silence of more than half a lease: one lease of grace for everybody.
UPDATE windlass_leases SET expires_at = max(expires_at, :now + length)
WHERE boot = :boot AND :silence > length / 2
