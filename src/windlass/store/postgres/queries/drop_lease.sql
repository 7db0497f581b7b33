-- A runner's lease is over; from here on it can claim nothing.
DELETE FROM windlass.leases WHERE runner = :runner
