-- The worker of a runner.
SELECT worker FROM windlass.leases WHERE runner = :runner::text
