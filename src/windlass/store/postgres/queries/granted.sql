-- Tokens of a queue that were granted to other runners and may still be spent.
SELECT coalesce(sum(tokens), 0)::bigint FROM windlass.shares
WHERE queue = :queue::text AND runner <> :runner::text AND until >= :now
