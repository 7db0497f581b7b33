-- The clock was set back: no lease, locked by the caller, lasts longer than its length from now.
UPDATE windlass.leases SET expires_at = :moment::bigint + length
WHERE runner = ANY (:runners::text[]) AND expires_at > :moment::bigint + length
