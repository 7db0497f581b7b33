-- name: queue_limits
-- The limits of a queue for a claim; no row if the queue is paused. The runner's own quota is locked until the claim ends;
-- if another transaction has locked it, it counts as zero. What this statement counts may be older than the lock; exact
-- counts need a later statement. With buckets, the claim also locks the queue until its transaction ends.
WITH /*yugabyte locked AS MATERIALIZED (
    SELECT 1 FROM windlass.claim_locks WHERE queue = :queue::text AND bucket = 0 FOR NO KEY UPDATE SKIP LOCKED
), */ queue AS MATERIALIZED (
    SELECT * FROM windlass.queues
    WHERE name = :queue::text AND (NOT paused OR paused_until <= :now)
), mine AS MATERIALIZED (
    SELECT slots FROM windlass.quotas
    WHERE queue = :queue::text AND runner = :runner::text AND (SELECT max_concurrency FROM queue) IS NOT NULL
    FOR NO KEY UPDATE SKIP LOCKED
), start AS MATERIALIZED (
    SELECT sort_priority, /*plain*/rank, returns/*end*//*yugabyte min(rank) AS rank, sum(returns) AS returns*/
    FROM windlass.watermarks
    WHERE queue = :queue::text /*yugabyte GROUP BY sort_priority */ ORDER BY sort_priority
)
SELECT (SELECT expires_at > :now FROM windlass.leases WHERE runner = :runner::text) AS leased,
    EXISTS (
        SELECT 1 FROM windlass.held_jobs WHERE runner = :runner::text AND claim = :claim::bigint AND :first::boolean
    ) AS again,
    queue.max_concurrency, queue.rate_limit, queue.fair, queue.rated,
    CASE WHEN queue.fair THEN queue.declared ELSE '{}' END AS declared,
    CASE WHEN queue.fair THEN queue.changed ELSE '{}' END AS changed,
    coalesce((SELECT slots FROM mine), 0) AS slots,
    CASE WHEN queue.max_concurrency IS NOT NULL
        THEN (SELECT coalesce(sum(slots), 0)::bigint FROM windlass.quotas WHERE queue = :queue::text) ELSE 0 END AS given,
    token_bucket.credit, token_bucket.period, token_bucket.at,
    (SELECT coalesce(sum(returns), 0)::bigint FROM start) AS returns,
    ARRAY(SELECT sort_priority FROM start) AS sort_priorities, ARRAY(SELECT rank FROM start) AS watermarks, :now AS now,
    EXISTS (SELECT 1 FROM windlass.dirty_keys WHERE queue = :queue::text AND tx >= :since::bigint) AS marked,
    :horizon AS behind,
    (SELECT windlass.shorten_claims(:runner::text, :over::bigint[])) AS gone
    /*yugabyte , (SELECT count(*) FROM windlass.due_watermark)::integer AS buckets, EXISTS (SELECT 1 FROM locked)
        OR NOT EXISTS (SELECT 1 FROM windlass.claim_locks WHERE queue = :queue::text AND bucket = 0) AS free */
FROM queue LEFT JOIN windlass.token_buckets AS token_bucket
    ON token_bucket.queue = :queue::text AND token_bucket.key = '' AND queue.rate_limit IS NOT NULL

-- name: count_held
-- How many jobs of a queue a runner holds, and its lowest claim number with jobs: lower ones need not be read again. An
-- earlier statement has locked its quota, so the number cannot grow.
SELECT count(*) FILTER (WHERE queue = :queue::text), min(claim),
    coalesce(bool_or(claim = :claim::bigint), false) AND :first::boolean
FROM windlass.held_jobs WHERE runner = :runner::text AND claim >= :since::bigint

-- name: set_slots
UPDATE windlass.quotas SET slots = :slots::integer WHERE queue = :queue::text AND runner = :runner::text

-- name: claim_best
-- Claim the next pending jobs of a limited queue, best first, where no tokens are needed: candidates and
-- claim_candidates in one statement.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
), taken AS (
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
        claimed_at = (SELECT now FROM moment), started_at = NULL, reason = NULL
    WHERE EXISTS (SELECT 1 FROM moment) AND ctid = ANY(ARRAY(
        SELECT job.ctid FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS start (sort_priority, rank, id)
        CROSS JOIN LATERAL (
            SELECT pending.ctid FROM windlass.jobs AS pending
            WHERE pending.queue = :queue::text AND pending.sort_priority = start.sort_priority
            AND (pending.rank, pending.id) > (start.rank, start.id) AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
        ) AS job LIMIT :limit::integer
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

-- name: candidates
-- Lock the next pending jobs of a limited queue, best first, from the cursors or watermarks on.
SELECT job.ctid::text, job.id::text, job.sort_priority, job.rank, job.tenant_queue, coalesce(job.rate_cost, 1) AS cost,
    job.concurrency_key, job.key_rate
FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS start (sort_priority, rank, id)
CROSS JOIN LATERAL (
    SELECT pending.ctid, pending.* FROM windlass.jobs AS pending
    WHERE pending.queue = :queue::text AND pending.sort_priority = start.sort_priority
    AND (pending.rank, pending.id) > (start.rank, start.id) AND pending.stage = 'pending' AND pending.status = 'pending'
    AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
    AND (NOT :unassigned::boolean OR pending.tenant_queue IS NULL)
    ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
) AS job LIMIT :limit::integer

-- name: claim_candidates
-- Claim the jobs that may start; delay the throttled ones, which keep their key slots and count no attempt; write the token
-- buckets. All this happens at one moment, and only if the lease and the granted tokens are still valid, because the
-- process may have been stopped since it read them.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE now <= coalesce(:until::bigint, now)
    AND EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
), passed AS (
    INSERT INTO windlass.token_buckets AS token_bucket (queue, key, credit, period, at, full_at)
    SELECT :queue::text, after.key, after.credit, after.period, moment.now, moment.now + after.filling
    FROM moment CROSS JOIN unnest(
        :keys::text[], :credits::bigint[], :periods::bigint[], :fillings::bigint[]
    ) AS after (key, credit, period, filling)
    ON CONFLICT (queue, key) DO UPDATE SET credit = excluded.credit, period = excluded.period,
        at = greatest(token_bucket.at, excluded.at),
        full_at = greatest(token_bucket.at, excluded.at) + excluded.full_at - excluded.at
), throttled_job AS (
    UPDATE windlass.jobs AS job
    SET status = 'scheduled', reason = 'rate limit of its key', run_at = moment.now + off.delay,
        updated_at = moment.now
    FROM moment CROSS JOIN unnest(:off::uuid[], :delays::bigint[]) AS off (id, delay)
    WHERE job.id = off.id
), taken AS (
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
        claimed_at = (SELECT now FROM moment), started_at = NULL, reason = NULL
    WHERE /*plain*/ctid = ANY(:row_refs::text[]::tid[])/*end*//*yugabyte id = ANY(:row_refs::text[]::uuid[])*/
    AND EXISTS (SELECT 1 FROM moment)
    RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues,
        snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
        parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
        sort_priority, rank, tenant_queue
), noted AS (
    INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT :runner::text, :claim::bigint, array_agg(id)::uuid[] FROM taken HAVING count(*) > 0
)
SELECT * FROM taken
