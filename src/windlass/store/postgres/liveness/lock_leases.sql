-- Lock all leases, in order, like renewals.
SELECT runner, length, graces FROM windlass.leases ORDER BY runner FOR UPDATE
