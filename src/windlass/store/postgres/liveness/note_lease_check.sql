-- Note a search for lapsed leases; skipped if the row is locked.
UPDATE windlass.lease_activity SET seen_at = :now WHERE one = (SELECT one FROM windlass.lease_activity WHERE one = 1 FOR UPDATE SKIP LOCKED)
