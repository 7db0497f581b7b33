-- Extend leases that were found to hold, in the same transaction.
UPDATE windlass_leases SET expires_at = :expires_at, length = :length, graced = 0
WHERE runner IN (SELECT value FROM json_each(:runners))
