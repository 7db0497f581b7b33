-- After a general silence of more than half a lease: one lease of grace for everybody, once until it is renewed.
-- Locked in order, like renewals.
WITH silent AS MATERIALIZED (
    SELECT runner FROM windlass.leases
    WHERE :silence::bigint > length / 2 AND NOT graced
    ORDER BY runner FOR UPDATE
)
UPDATE windlass.leases SET expires_at = greatest(expires_at, :moment::bigint + length), graced = true
WHERE runner = ANY (ARRAY(SELECT runner FROM silent))
