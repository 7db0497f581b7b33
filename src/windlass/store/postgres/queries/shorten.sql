-- The clock was set back: no lease lasts for longer than its length from now. Locked in order, like renewals.
WITH long AS MATERIALIZED (
    SELECT runner FROM windlass.leases WHERE expires_at > :moment::bigint + length ORDER BY runner FOR UPDATE
)
UPDATE windlass.leases SET expires_at = :moment::bigint + length WHERE runner = ANY (ARRAY(SELECT runner FROM long))
