-- Valid tokens of a queue that were granted to other runners.
SELECT coalesce(sum(tokens), 0)::bigint FROM windlass.quotas
WHERE queue = :queue::text AND runner <> :runner::text AND until >= :now
