-- How many jobs of a queue a runner holds, and its lowest claim number with jobs: lower ones need not be read again.
-- Its quota was locked by an earlier statement, so the number cannot grow.
SELECT count(*) FILTER (WHERE queue = :queue::text), min(claim),
    coalesce(bool_or(claim = :claim::bigint), false) AND :first::boolean
FROM windlass.jobs WHERE worker = :runner::text AND status = 'running' AND claim >= :since::bigint
