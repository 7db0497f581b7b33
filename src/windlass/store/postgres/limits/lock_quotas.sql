-- Lock the quotas of other runners, in order; those of claiming runners are skipped.
SELECT runner FROM windlass.quotas
WHERE queue = :queue::text AND runner <> :runner::text AND slots > 0 ORDER BY runner FOR NO KEY UPDATE SKIP LOCKED
