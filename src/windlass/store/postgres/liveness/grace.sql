-- Extend leases, locked by the caller, by one length from the moment.
UPDATE windlass.leases SET expires_at = greatest(expires_at, :moment::bigint + length), graces = graces + 1
WHERE runner = ANY (:runners::text[])
