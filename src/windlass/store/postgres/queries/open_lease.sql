-- A lease for a new runner; one that lapsed is not brought back.
INSERT INTO windlass.leases (runner, worker, expires_at, length)
VALUES (:runner, :worker, :now + :length::bigint, :length::bigint)
ON CONFLICT (runner) DO NOTHING
