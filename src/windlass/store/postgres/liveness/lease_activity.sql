-- The last renewal, the time, and the length of the shortest lease, including one about to be opened. Without a lock.
SELECT (SELECT at FROM windlass.lease_activity WHERE one = 1), :now, least(:length::bigint, (SELECT min(length) FROM windlass.leases))
