-- replaces: claim_best
-- Claim the next pending jobs of a limited queue, the best of all buckets, where no tokens are needed. Jobs that are locked,
-- for example by a caller's transaction, are skipped.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
), heads AS MATERIALIZED (
    SELECT job.id FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS start (sort_priority, rank, id)
    CROSS JOIN LATERAL (
        SELECT head.id FROM (/*each*/(
            SELECT pending.id, pending.rank FROM windlass.jobs AS pending
            WHERE pending.bucket = :bucket AND pending.queue = :queue::text AND pending.sort_priority = start.sort_priority
            AND (pending.rank, pending.id) > (start.rank, start.id) AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT :limit::integer
        )/*end*/) AS head ORDER BY head.rank, head.id LIMIT :limit::integer
    ) AS job LIMIT :limit::integer
), free AS MATERIALIZED (
    SELECT job.id FROM heads CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = heads.id AND status || '' = 'pending' AND queue || '' = :queue::text
        FOR UPDATE SKIP LOCKED
    ) AS job
), taken AS (
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
        claimed_at = (SELECT now FROM moment), started_at = NULL, reason = NULL
    WHERE EXISTS (SELECT 1 FROM moment) AND id = ANY(ARRAY(SELECT id FROM free))
    RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues,
        snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
        parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
        sort_priority, rank, tenant_queue
), noted AS (
    INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT :runner::text, :claim::bigint, array_agg(id)::uuid[] FROM taken HAVING count(*) > 0
)
SELECT * FROM taken

-- replaces: candidates
-- Lock the next pending jobs of a limited queue, the best of all buckets, from the cursors or watermarks on.
SELECT job.id::text, job.id::text, job.sort_priority, job.rank, job.tenant_queue, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM windlass.jobs AS job WHERE job.id = ANY(ARRAY(
    SELECT best.id FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS start (sort_priority, rank, id)
    CROSS JOIN LATERAL (
        SELECT head.id FROM (/*each*/(
            SELECT pending.id, pending.rank FROM windlass.jobs AS pending
            WHERE pending.bucket = :bucket AND pending.queue = :queue::text AND pending.sort_priority = start.sort_priority
            AND (pending.rank, pending.id) > (start.rank, start.id) AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            AND (NOT :unassigned::boolean OR pending.tenant_queue IS NULL)
            ORDER BY pending.rank, pending.id LIMIT :limit::integer
        )/*end*/) AS head ORDER BY head.rank, head.id LIMIT :limit::integer
    ) AS best LIMIT :limit::integer
)) AND job.status || '' = 'pending' AND job.queue || '' = :queue::text
ORDER BY job.sort_priority, job.rank, job.id FOR UPDATE SKIP LOCKED
