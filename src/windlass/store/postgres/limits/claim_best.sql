-- Claim the next pending jobs of a limited queue, best first, where no tokens are needed: candidates and
-- claim_candidates in one statement.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
)
UPDATE windlass.jobs
SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
    claimed_at = (SELECT now FROM moment), started_at = NULL, updated_at = (SELECT now FROM moment), reason = NULL
WHERE EXISTS (SELECT 1 FROM moment) AND ctid = ANY(ARRAY(
    SELECT job.ctid FROM unnest(:sort_priorities::integer[], :ranks::bigint[], :ids::uuid[]) AS place (sort_priority, rank, id)
    CROSS JOIN LATERAL (
        SELECT pending.ctid FROM windlass.jobs AS pending
        WHERE pending.queue = :queue::text AND pending.sort_priority = place.sort_priority
        AND (pending.rank, pending.id) > (place.rank, place.id) AND pending.status = 'pending'
        AND pending.type = ANY(:types::text[]) AND (pending.expires_at IS NULL OR pending.expires_at > :now)
        ORDER BY pending.rank, pending.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS job LIMIT :limit::integer
))
RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues,
    snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
    parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
    sort_priority, rank, tenant_queue
