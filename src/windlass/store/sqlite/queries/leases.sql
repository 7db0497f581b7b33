-- Every lease.
SELECT runner, worker, boot, expires_at FROM windlass_leases ORDER BY runner
