-- name: tenant_candidates
-- Lock the next pending jobs of some tenants at one priority of a fair queue, from the cursors or the watermark on.
SELECT job./*plain*/ctid/*end*//*yugabyte id*/::text, job.id::text, job.sort_priority, job.rank, job.tenant_queue,
    coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:tenant_queues::text[], :ranks::bigint[], :ids::uuid[], :counts::integer[]) AS turn (tenant_queue, rank, id, jobs)
CROSS JOIN LATERAL (
    SELECT /*plain*/pending.ctid,/*end*/ pending.* FROM windlass.jobs AS pending
    WHERE pending.queue COLLATE "C" = :queue::text AND pending.sort_priority = :sort_priority::integer
    AND pending.tenant_queue = turn.tenant_queue
    AND (pending.rank, pending.id) > (turn.rank, turn.id) AND pending.stage = 'pending' AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    ORDER BY pending.rank, pending.id LIMIT turn.jobs FOR UPDATE SKIP LOCKED
) AS job

-- name: claim_tenants
-- Claim the next pending jobs of some tenants at one priority of a fair queue, where no tokens are needed:
-- tenant_candidates and claim_candidates in one statement: as two, a claim of ten jobs costs a tenth more processor time.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
), taken AS (
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
        claimed_at = (SELECT now FROM moment), started_at = NULL, reason = NULL
    WHERE EXISTS (SELECT 1 FROM moment) AND /*plain*/ctid/*end*//*yugabyte id*/ = ANY(ARRAY(
        SELECT job.at FROM unnest(:tenant_queues::text[], :ranks::bigint[], :ids::uuid[], :counts::integer[])
            AS turn (tenant_queue, rank, id, jobs)
        CROSS JOIN LATERAL (
            SELECT /*plain*/pending.ctid/*end*//*yugabyte pending.id*/ AS at FROM windlass.jobs AS pending
            WHERE pending.queue COLLATE "C" = :queue::text AND pending.sort_priority = :sort_priority::integer
            AND pending.tenant_queue = turn.tenant_queue
            AND (pending.rank, pending.id) > (turn.rank, turn.id) AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT turn.jobs FOR UPDATE SKIP LOCKED
        ) AS job
    ))
    RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues,
        snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
        parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
        sort_priority, rank, tenant_queue
), noted AS (
    INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT :runner::text, :claim::bigint, array_agg(id)::uuid[] FROM taken HAVING count(*) > 0
)
SELECT * FROM taken

-- name: tenants
-- Tenants with pending jobs at one priority of a fair queue, from :from on: one seek each in the index.
WITH RECURSIVE waiting (tenant_queue, n) AS (
    (
        SELECT tenant_queue, 1 FROM windlass.jobs
        WHERE queue COLLATE "C" = :queue::text AND sort_priority = :sort_priority::integer AND stage = 'pending'
        AND status = 'pending' AND tenant_queue IS NOT NULL
        AND tenant_queue >= :from::text
        ORDER BY tenant_queue, rank, id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.tenant_queue FROM windlass.jobs AS job
        WHERE job.queue COLLATE "C" = :queue::text AND job.sort_priority = :sort_priority::integer
        AND job.stage = 'pending' AND job.status = 'pending'
        AND job.tenant_queue IS NOT NULL AND job.tenant_queue > waiting.tenant_queue
        ORDER BY job.tenant_queue, job.rank, job.id LIMIT 1
    ), n + 1
    FROM waiting WHERE waiting.tenant_queue IS NOT NULL AND n < :limit::integer
)
SELECT tenant_queue FROM waiting WHERE tenant_queue IS NOT NULL

-- name: other_tenants
-- Tenants with pending jobs at one priority of a fair queue, except those known to have some: one seek each in the gaps
-- between known ones, whose own entries, most of them dead, are not read.
WITH RECURSIVE waiting (tenant_queue, until) AS (
    SELECT first.tenant_queue, gap.until FROM unnest(:starts::text[], :ends::text[]) AS gap (start, until)
    CROSS JOIN LATERAL (
        SELECT job.tenant_queue FROM windlass.jobs AS job
        WHERE job.queue COLLATE "C" = :queue::text AND job.sort_priority = :sort_priority::integer
        AND job.stage = 'pending' AND job.status = 'pending'
        AND job.tenant_queue IS NOT NULL AND job.tenant_queue >= gap.start AND job.tenant_queue < gap.until
        ORDER BY job.tenant_queue, job.rank, job.id LIMIT 1
    ) AS first
    UNION ALL
    SELECT next.tenant_queue, waiting.until FROM waiting CROSS JOIN LATERAL (
        SELECT job.tenant_queue FROM windlass.jobs AS job
        WHERE job.queue COLLATE "C" = :queue::text AND job.sort_priority = :sort_priority::integer
        AND job.stage = 'pending' AND job.status = 'pending'
        AND job.tenant_queue IS NOT NULL AND job.tenant_queue > waiting.tenant_queue AND job.tenant_queue < waiting.until
        ORDER BY job.tenant_queue, job.rank, job.id LIMIT 1
    ) AS next
)
SELECT tenant_queue FROM waiting LIMIT :limit::integer
