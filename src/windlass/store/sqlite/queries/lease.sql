-- One runner's lease.
SELECT runner, worker, boot, expires_at FROM windlass_leases WHERE runner = :runner
