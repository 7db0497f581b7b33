-- A lease for a new runner.
INSERT INTO windlass_leases (runner, worker, boot, expires_at, length)
VALUES (:runner, :worker, :boot, :expires_at, :length)
ON CONFLICT (runner) DO NOTHING
