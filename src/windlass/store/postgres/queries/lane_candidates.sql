-- The next pending jobs of some tenants in one place of a fair queue: so many of each, from its cursor or the floor on,
-- locked until it is decided which of them may go.
SELECT job.ctid::text, job.id::text, job.urgency, job.rank, job.lane, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:lanes::text[], :ranks::bigint[], :ids::uuid[], :counts::integer[]) AS turn (lane, rank, id, jobs)
CROSS JOIN LATERAL (
    SELECT pending.ctid, pending.* FROM windlass.jobs AS pending
    WHERE pending.queue COLLATE "C" = :queue::text AND pending.urgency = :urgency::integer AND pending.lane = turn.lane
    AND (pending.rank, pending.id) > (turn.rank, turn.id) AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    ORDER BY pending.rank, pending.id LIMIT turn.jobs FOR UPDATE SKIP LOCKED
) AS job
