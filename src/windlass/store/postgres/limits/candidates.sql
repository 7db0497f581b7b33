-- Lock the next pending jobs of a limited queue, best first, from the cursors or watermarks on.
SELECT job.ctid::text, job.id::text, job.sort_priority, job.rank, job.tenant_queue, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS place (sort_priority, rank, id)
CROSS JOIN LATERAL (
    SELECT pending.ctid, pending.* FROM windlass.jobs AS pending
    WHERE pending.queue = :queue::text AND pending.sort_priority = place.sort_priority
    AND (pending.rank, pending.id) > (place.rank, place.id) AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    AND (NOT :unassigned::boolean OR pending.tenant_queue IS NULL)
    ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
) AS job LIMIT :limit::integer
