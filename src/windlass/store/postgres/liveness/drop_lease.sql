-- Delete a runner's lease: it can claim nothing from here on.
DELETE FROM windlass.leases WHERE runner = :runner
