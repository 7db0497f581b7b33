-- Take up to :limit pending jobs for a runner, from places in their order, each from its cursor on, or from its floor
-- if jobs were put back since the cursor was where it is. The attempt is counted here, so that a job that kills its
-- runner has still used one up. Always a row: the first columns tell
-- whether the runner has its lease, whether an earlier try of this very claim has taken jobs already, and how many times
-- jobs were put back here; which of the queues have keys that are marked (lines.py), and which are ruled. Those go a way
-- of their own (ruled.py): nothing is taken from them nor from those after them. In no order: whoever asked sorts them,
-- at less cost.
WITH leased AS MATERIALIZED (
    SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > :now
), again AS MATERIALIZED (
    SELECT 1 FROM windlass.jobs
    WHERE worker = :runner::text AND claim = :claim::bigint AND status = 'running' AND :first::boolean LIMIT 1
), back AS MATERIALIZED (
    SELECT coalesce(sum(returns), 0)::bigint AS returns FROM windlass.floors WHERE queue = ANY(:queues::text[])
), asked AS MATERIALIZED (
    SELECT share.queue, share.place, queue.ruled OR queue.rated AS ruled
    FROM unnest(:queues::text[]) WITH ORDINALITY AS share (queue, place)
    LEFT JOIN windlass.queues AS queue ON queue.name = share.queue
    WHERE queue.name IS NULL OR NOT queue.paused OR queue.paused_until <= :now
), place AS MATERIALIZED (
    SELECT floor.queue, floor.urgency, coalesce(seen.rank, floor.rank) AS rank,
        coalesce(seen.id, '00000000-0000-0000-0000-000000000000') AS id
    FROM asked AS share JOIN windlass.floors AS floor ON floor.queue = share.queue
    LEFT JOIN unnest(
        :seen_queues::text[], :seen_urgencies::integer[], :seen_ranks::bigint[], :seen_ids::uuid[]
    ) AS seen (queue, urgency, rank, id)
        ON seen.queue = floor.queue AND seen.urgency = floor.urgency AND seen.rank >= floor.rank
        AND (SELECT returns FROM back) = :returns::bigint
    WHERE EXISTS (SELECT 1 FROM leased) AND NOT EXISTS (SELECT 1 FROM again)
    AND NOT EXISTS (SELECT 1 FROM asked AS ruled WHERE ruled.ruled AND ruled.place <= share.place)
    ORDER BY share.place, floor.urgency
), taken AS (
    -- By the row's place in the table: it is locked, so it stays there, and no plan can go astray.
    UPDATE windlass.jobs
    SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint, claimed_at = :now,
        started_at = NULL, updated_at = :now, reason = NULL
    WHERE ctid = ANY(ARRAY(
        SELECT job.ctid FROM place CROSS JOIN LATERAL (
            SELECT pending.ctid FROM windlass.jobs AS pending
            WHERE pending.queue = place.queue AND pending.urgency = place.urgency
            AND (pending.rank, pending.id) > (place.rank, place.id) AND pending.status = 'pending'
            AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
            ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
        ) AS job LIMIT :limit::integer
    ))
    RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, hand_backs,
        snoozes, -urgency - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
        parent::text, flow, timeout, expires_at, tags, meta, takes, inputs, schedule, tick,
        urgency, rank
)
SELECT EXISTS (SELECT 1 FROM leased) AS leased, EXISTS (SELECT 1 FROM again) AS again,
    (SELECT returns FROM back) AS returns, ARRAY(SELECT queue FROM asked WHERE ruled) AS ruled, ARRAY(
        SELECT share.queue FROM unnest(:queues::text[]) AS share (queue)
        WHERE EXISTS (SELECT 1 FROM windlass.marks AS mark WHERE mark.queue = share.queue AND mark.tx >= :since::bigint)
    ) AS marked, pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS behind, taken.*
FROM (VALUES (1)) AS always LEFT JOIN taken ON true
