-- name: claim
-- Claim up to :limit pending jobs, queue by queue and priority by priority, from the cursors on, or from the watermarks if
-- jobs were put back since. Nothing is taken from limited queues (limits/limited_claim.py), nor from those after them. The
-- attempt is counted already here, so that it also counts if the job kills its runner. A row in `claims` records what the
-- runner holds. One row of the answer has no job and is about the claim: whether the lease is valid (NULL: there is none),
-- whether an earlier try of this claim took jobs, the number of returns, the limited queues, those with dirty keys, the
-- first transaction whose dirty keys may not have been seen, and how many older rows of `claims` were deleted. The jobs
-- are in no order: sorting them in Python costs less.
WITH leased AS MATERIALIZED (
    SELECT expires_at > :now AS holds FROM windlass.leases WHERE runner = :runner::text
), again AS MATERIALIZED (
    SELECT 1 FROM windlass.held_jobs WHERE runner = :runner::text AND claim = :claim::bigint AND :first::boolean LIMIT 1
), back AS MATERIALIZED (
    SELECT coalesce(sum(returns), 0)::bigint AS returns FROM windlass.watermarks WHERE queue = ANY(:queues::text[])
), asked AS MATERIALIZED (
    SELECT quota.queue, quota.number, queue.limited OR queue.rated AS limited
    FROM unnest(:queues::text[]) WITH ORDINALITY AS quota (queue, number)
    LEFT JOIN windlass.queues AS queue ON queue.name = quota.queue
    WHERE queue.name IS NULL OR NOT queue.paused OR queue.paused_until <= :now
), start AS MATERIALIZED (
    SELECT watermark.queue, watermark.sort_priority, coalesce(seen.rank, watermark.rank) AS rank,
        coalesce(seen.id, '00000000-0000-0000-0000-000000000000') AS id
    FROM asked AS quota JOIN windlass.watermarks AS watermark ON watermark.queue = quota.queue
    LEFT JOIN unnest(
        :seen_queues::text[], :seen_sort_priorities::integer[], :seen_ranks::bigint[], :seen_ids::uuid[]
    ) AS seen (queue, sort_priority, rank, id)
        ON seen.queue = watermark.queue AND seen.sort_priority = watermark.sort_priority AND seen.rank >= watermark.rank
        AND (SELECT returns FROM back) = :returns::bigint
    WHERE (SELECT holds FROM leased) AND NOT EXISTS (SELECT 1 FROM again)
    AND NOT EXISTS (SELECT 1 FROM asked AS limited WHERE limited.limited AND limited.number <= quota.number)
    ORDER BY quota.number, watermark.sort_priority
), taken AS (
    -- By the row's ctid, which does not change because the row is locked, and for which there is only one plan.
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint, claimed_at = :now,
        started_at = NULL, reason = NULL
    WHERE ctid = ANY(ARRAY(
        SELECT job.ctid FROM start CROSS JOIN LATERAL (
            SELECT pending.ctid FROM windlass.jobs AS pending
            WHERE pending.queue = start.queue AND pending.sort_priority = start.sort_priority
            AND (pending.rank, pending.id) > (start.rank, start.id) AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
        ) AS job LIMIT :limit::integer
    ))
    RETURNING id, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes,
        sort_priority, aged_by, rank, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent, flow,
        timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick
), noted AS (
    INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT :runner::text, :claim::bigint, array_agg(id) FROM taken HAVING count(*) > 0
)
SELECT head.*, taken.id::text AS id, taken.queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions,
    requeues, snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key,
    tenant, parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
    sort_priority, rank
FROM (
    SELECT (SELECT holds FROM leased) AS leased, EXISTS (SELECT 1 FROM again) AS again,
        (SELECT returns FROM back) AS returns, ARRAY(SELECT queue FROM asked WHERE limited) AS limited, ARRAY(
            SELECT quota.queue FROM unnest(:queues::text[]) AS quota (queue)
            WHERE EXISTS (SELECT 1 FROM windlass.dirty_keys AS dirty WHERE dirty.queue = quota.queue AND dirty.tx >= :since::bigint)
        ) AS marked, :horizon AS behind,
        windlass.shorten_claims(:runner::text, :over::bigint[]) AS gone
) AS head FULL JOIN taken ON false

-- name: claimed
-- The running jobs of a claim, best first.
SELECT id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes,
    -sort_priority - aged_by, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent::text,
    flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick
FROM windlass.jobs
WHERE id = ANY(ARRAY(SELECT id FROM windlass.held_jobs WHERE runner = :runner::text AND claim = :claim::bigint))
ORDER BY sort_priority, rank, id
