-- Lock the next pending jobs of some tenants at one priority of a fair queue, from the cursors or the watermark on.
SELECT job.ctid::text, job.id::text, job.sort_priority, job.rank, job.tenant_queue, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:tenant_queues::text[], :ranks::bigint[], :ids::uuid[], :counts::integer[]) AS turn (tenant_queue, rank, id, jobs)
CROSS JOIN LATERAL (
    SELECT pending.ctid, pending.* FROM windlass.jobs AS pending
    WHERE pending.queue COLLATE "C" = :queue::text AND pending.sort_priority = :sort_priority::integer AND pending.tenant_queue = turn.tenant_queue
    AND (pending.rank, pending.id) > (turn.rank, turn.id) AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    ORDER BY pending.rank, pending.id LIMIT turn.jobs FOR UPDATE SKIP LOCKED
) AS job
