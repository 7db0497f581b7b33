-- Extend the leases that hold. Each is locked first, in order: one that a rescuer deleted while we waited for it is not
-- among them, and one that lapsed never is.
WITH kept AS MATERIALIZED (
    SELECT runner FROM windlass.leases
    WHERE runner = ANY (:runners::text[]) AND expires_at > :moment::bigint
    ORDER BY runner FOR UPDATE
)
UPDATE windlass.leases SET expires_at = :now + :length::bigint, length = :length::bigint, graced = false
WHERE runner = ANY (ARRAY(SELECT runner FROM kept))
RETURNING runner
