-- Whose runner this is.
SELECT worker FROM windlass.leases WHERE runner = :runner::text
