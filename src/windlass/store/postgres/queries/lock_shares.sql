-- The shares of other runners, in one order; of one that claims at this moment nothing is taken.
SELECT runner FROM windlass.shares
WHERE queue = :queue::text AND runner <> :runner::text AND slots > 0 ORDER BY runner FOR NO KEY UPDATE SKIP LOCKED
