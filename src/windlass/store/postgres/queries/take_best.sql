-- The next pending jobs of a ruled queue, best first, taken at once: for where none of them has to pay. See candidates
-- and take, which do the same in two steps.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
)
UPDATE windlass.jobs
SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
    claimed_at = (SELECT now FROM moment), started_at = NULL, updated_at = (SELECT now FROM moment), reason = NULL
WHERE EXISTS (SELECT 1 FROM moment) AND ctid = ANY(ARRAY(
    SELECT job.ctid FROM unnest(:urgencies::integer[], :ranks::bigint[], :ids::uuid[]) AS place (urgency, rank, id)
    CROSS JOIN LATERAL (
        SELECT pending.ctid FROM windlass.jobs AS pending
        WHERE pending.queue = :queue::text AND pending.urgency = place.urgency
        AND (pending.rank, pending.id) > (place.rank, place.id) AND pending.status = 'pending'
        AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
        ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS job LIMIT :limit::integer
))
RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, hand_backs,
    snoozes, -urgency - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
    parent::text, flow, timeout, expires_at, tags, meta, takes, inputs, schedule, tick,
    urgency, rank, lane
