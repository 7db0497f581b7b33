-- Whether any lease has lapsed, and what time it is: a look without a lock.
SELECT EXISTS (SELECT FROM windlass.leases WHERE expires_at <= :now), :now
