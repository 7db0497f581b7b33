-- A runner's lease is over; from here on it can claim nothing.
DELETE FROM windlass_leases WHERE runner = :runner
