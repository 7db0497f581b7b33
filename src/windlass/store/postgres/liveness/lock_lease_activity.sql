-- Lock the lease activity: a transaction that waited sees what the holder before has written.
SELECT at, greatest(at, seen_at), graced_until, :now FROM windlass.lease_activity WHERE one = 1 FOR UPDATE
