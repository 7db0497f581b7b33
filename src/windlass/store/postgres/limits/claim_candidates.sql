-- Claim the jobs that may start; delay the throttled ones, with their slots and uncounted; write the buckets. All at
-- one moment, and only if the lease and the granted tokens are valid: the process may have been stopped since it read
-- them.
WITH moment AS MATERIALIZED (
    SELECT now FROM (SELECT :now AS now) AS clock
    WHERE now <= coalesce(:until::bigint, now)
    AND EXISTS (SELECT 1 FROM windlass.leases WHERE runner = :runner::text AND expires_at > now)
), passed AS (
    INSERT INTO windlass.buckets AS bucket (queue, key, credit, period, at, full_at)
    SELECT :queue::text, after.key, after.credit, after.period, moment.now, moment.now + after.filling
    FROM moment CROSS JOIN unnest(
        :keys::text[], :credits::bigint[], :periods::bigint[], :fillings::bigint[]
    ) AS after (key, credit, period, filling)
    ON CONFLICT (queue, key) DO UPDATE SET credit = excluded.credit, period = excluded.period,
        at = greatest(bucket.at, excluded.at), full_at = greatest(bucket.at, excluded.at) + excluded.full_at - excluded.at
), put_off AS (
    UPDATE windlass.jobs AS job
    SET status = 'scheduled', reason = 'rate limit of its key', run_at = moment.now + off.delay,
        updated_at = moment.now
    FROM moment CROSS JOIN unnest(:off::uuid[], :delays::bigint[]) AS off (id, delay)
    WHERE job.id = off.id
)
UPDATE windlass.jobs
SET status = 'running', attempt = attempt + 1, worker = :runner::text, claim = :claim::bigint,
    claimed_at = (SELECT now FROM moment), started_at = NULL, updated_at = (SELECT now FROM moment), reason = NULL
WHERE ctid = ANY(:places::text[]::tid[]) AND EXISTS (SELECT 1 FROM moment)
RETURNING id::text, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues,
    snoozes, -sort_priority - aged_by AS priority, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant,
    parent::text, flow, timeout, expires_at, tags, meta, result_params, parent_results, schedule, tick,
    sort_priority, rank, tenant_queue
