-- The next pending jobs of a ruled queue, best first, locked until it is decided which of them may go. From their cursors
-- or floors on, like the plain claim.
SELECT job.ctid::text, job.id::text, job.urgency, job.rank, job.lane, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:urgencies::integer[], :ranks::bigint[], :ids::uuid[]) AS place (urgency, rank, id)
CROSS JOIN LATERAL (
    SELECT pending.ctid, pending.* FROM windlass.jobs AS pending
    WHERE pending.queue = :queue::text AND pending.urgency = place.urgency
    AND (pending.rank, pending.id) > (place.rank, place.id) AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    AND (NOT :laneless::boolean OR pending.lane IS NULL)
    ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
) AS job LIMIT :limit::integer
