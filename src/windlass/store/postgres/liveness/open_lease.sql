-- A lease for a new runner; a lapsed one is not renewed.
INSERT INTO windlass.leases (runner, worker, expires_at, length)
VALUES (:runner, :worker, :now + :length::bigint, :length::bigint)
ON CONFLICT (runner) DO NOTHING
