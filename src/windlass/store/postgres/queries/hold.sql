-- How many jobs of a queue a runner really holds, and the lowest number of a claim of which it holds any: lower ones need
-- not be looked at again. Its share is locked in an earlier statement, so there can be no more of them until that is over.
SELECT count(*) FILTER (WHERE queue = :queue::text), min(claim),
    coalesce(bool_or(claim = :claim::bigint), false) AND :first::boolean
FROM windlass.jobs WHERE worker = :runner::text AND status = 'running' AND claim >= :since::bigint
