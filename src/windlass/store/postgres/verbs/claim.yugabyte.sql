-- replaces: claim
-- The same for jobs in buckets. A claim locks the row of each queue in `claim_locks`, and takes the best jobs of all buckets;
-- a loose claim locks some buckets, and takes their best jobs. The first jobs of the buckets are merged, so that the search
-- ends at the last job that is taken. The locks only serialize claims. What keeps a job from being claimed twice, or
-- without regard to the limits of another queue, are its status and queue, which are checked again under the row's lock.
-- A caller's transaction may have locked a job: a claim waits for it for a bounded time, and a careful claim skips it.
-- `contended` says that nothing was taken because of other claims; in a careful claim the jobs may be locked instead.
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
), locked AS MATERIALIZED (
    SELECT quota.queue, free.bucket FROM asked AS quota CROSS JOIN LATERAL (
        SELECT held.bucket FROM windlass.claim_locks AS held
        WHERE held.queue = quota.queue AND (:loose::boolean OR held.bucket = 0)
        ORDER BY (held.bucket + :turn::integer) % :known_buckets::integer LIMIT :width::integer FOR NO KEY UPDATE SKIP LOCKED
    ) AS free
    WHERE NOT :forced::boolean AND (SELECT holds FROM leased) AND NOT EXISTS (SELECT 1 FROM again)
), busy AS MATERIALIZED (
    SELECT 1 FROM asked AS quota WHERE NOT :forced::boolean AND (SELECT holds FROM leased) AND NOT EXISTS (SELECT 1 FROM again)
    AND quota.queue NOT IN (SELECT queue FROM locked)
    AND EXISTS (SELECT 1 FROM windlass.claim_locks AS held WHERE held.queue = quota.queue AND held.bucket = 0) LIMIT 1
), start AS MATERIALIZED (
    SELECT watermark.queue, watermark.sort_priority,
        array_agg(coalesce(seen.rank, watermark.rank) ORDER BY watermark.bucket) AS ranks,
        array_agg(coalesce(seen.id, '00000000-0000-0000-0000-000000000000') ORDER BY watermark.bucket) AS ids,
        array_agg(watermark.bucket) FILTER (
            WHERE NOT :loose::boolean OR :forced::boolean
            OR (watermark.queue, watermark.bucket) IN (SELECT queue, bucket FROM locked)
        ) AS open
    FROM asked AS quota JOIN windlass.watermarks AS watermark ON watermark.queue = quota.queue
    LEFT JOIN unnest(
        :seen_queues::text[], :seen_sort_priorities::integer[], :seen_buckets::integer[], :seen_ranks::bigint[], :seen_ids::uuid[]
    ) AS seen (queue, sort_priority, bucket, rank, id)
        ON seen.queue = watermark.queue AND seen.sort_priority = watermark.sort_priority
        AND seen.bucket IN (-1, watermark.bucket) AND seen.rank >= watermark.rank
        AND (SELECT returns FROM back) = :returns::bigint
    WHERE (SELECT holds FROM leased) AND NOT EXISTS (SELECT 1 FROM again) AND NOT EXISTS (SELECT 1 FROM busy)
    AND NOT EXISTS (SELECT 1 FROM asked AS limited WHERE limited.limited AND limited.number <= quota.number)
    GROUP BY quota.number, watermark.queue, watermark.sort_priority
    ORDER BY quota.number, watermark.sort_priority
), heads AS MATERIALIZED (
    SELECT job.id FROM start CROSS JOIN LATERAL (
        SELECT head.id FROM (/*each*/(
            SELECT pending.id, pending.rank FROM windlass.jobs AS pending
            WHERE pending.bucket = :bucket AND :bucket = ANY(start.open)
            AND pending.queue = start.queue AND pending.sort_priority = start.sort_priority
            AND (pending.rank, pending.id) > (start.ranks[:bucket + 1], start.ids[:bucket + 1])
            AND pending.stage = 'pending' AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT :window::integer
        )/*end*/) AS head ORDER BY head.rank, head.id LIMIT :window::integer
    ) AS job LIMIT :window::integer
), free AS MATERIALIZED (
    SELECT job.id FROM heads CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = heads.id AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    ) AS job WHERE :careful::boolean LIMIT :limit::integer
), taken AS (
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint, claimed_at = :now,
        started_at = NULL, reason = NULL
    WHERE id = ANY(CASE WHEN :careful::boolean THEN ARRAY(SELECT id FROM free) ELSE ARRAY(SELECT id FROM heads) END)
    AND status = 'pending' AND queue || '' = ANY(ARRAY(SELECT queue FROM start))
    RETURNING id, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes,
        sort_priority, aged_by, rank, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent, flow,
        timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick, bucket
), noted AS (
    INSERT INTO windlass.claims (runner, claim, jobs)
    SELECT :runner::text, :claim::bigint, array_agg(id) FROM taken HAVING count(*) > 0
)
SELECT leased, again, returns, limited, marked, behind, gone,
    taken.id::text AS id, taken.queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions,
    requeues, snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key,
    tenant, parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
    sort_priority, rank, bucket, contended, buckets
FROM (
    SELECT (SELECT holds FROM leased) AS leased, EXISTS (SELECT 1 FROM again) AS again,
        (SELECT returns FROM back) AS returns, ARRAY(SELECT queue FROM asked WHERE limited) AS limited, ARRAY(
            SELECT quota.queue FROM unnest(:queues::text[]) AS quota (queue)
            WHERE EXISTS (SELECT 1 FROM windlass.dirty_keys AS dirty WHERE dirty.queue = quota.queue AND dirty.tx >= :since::bigint)
        ) AS marked, :horizon AS behind,
        windlass.shorten_claims(:runner::text, :over::bigint[]) AS gone,
        EXISTS (SELECT 1 FROM busy)
            OR (NOT :careful::boolean AND EXISTS (SELECT 1 FROM heads) AND NOT EXISTS (SELECT 1 FROM taken)) AS contended,
        (SELECT count(*) FROM windlass.due_watermark)::integer AS buckets
) AS head FULL JOIN taken ON false
