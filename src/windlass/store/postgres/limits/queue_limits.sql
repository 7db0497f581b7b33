-- name: queue_loads
-- For each limited queue: how many jobs run under a lease, and its token bucket.
SELECT queue.name, queue.max_concurrency, queue.rate_limit, CASE WHEN queue.max_concurrency IS NOT NULL THEN (
    SELECT coalesce(sum((
        SELECT count(*) FROM windlass.held_jobs AS job WHERE job.runner = lease.runner AND job.queue || '' = queue.name
    )), 0) FROM windlass.leases AS lease
) END AS running, token_bucket.credit, token_bucket.period, token_bucket.at, :now AS now
FROM windlass.queues AS queue LEFT JOIN windlass.token_buckets AS token_bucket
    ON token_bucket.queue = queue.name AND token_bucket.key = '' AND queue.rate_limit IS NOT NULL
WHERE queue.name = ANY(:queues::text[]) AND queue.limited

-- name: has_work
-- Whether there is a job to claim, a due job, or a dirty key.
SELECT EXISTS (
    SELECT 1 FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = watermark.queue AND job.sort_priority = watermark.sort_priority AND job.rank >= watermark.rank
        /*yugabyte AND job.bucket = watermark.bucket */ AND job.stage = 'pending' AND job.status = 'pending'
        AND (:types::text[] IS NULL OR job.type = ANY(:types::text[])) LIMIT 1
    ) AS found WHERE watermark.queue = ANY(:queues::text[]) AND NOT EXISTS (
        SELECT 1 FROM windlass.queues AS queue
        WHERE queue.name = watermark.queue AND queue.paused AND (queue.paused_until IS NULL OR queue.paused_until > :now)
    )
) OR EXISTS (
    SELECT 1 FROM windlass.due_watermark AS start CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs
        WHERE stage IN ('scheduled', 'failed') AND run_at <= :now AND run_at >= start.due /*yugabyte AND bucket = start.bucket */
        LIMIT 1
    ) AS due
)
OR EXISTS (SELECT 1 FROM windlass.dirty_keys WHERE queue = ANY(:queues::text[]))

-- name: lock_limit
-- Lock the queue, so that one process at a time assigns quotas. The commit need not be flushed, because the claim that
-- follows is later in the WAL.
SELECT coalesce(max_concurrency, 0), set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED

-- name: count_quotas
-- Set the quotas that are not counted yet, of new runners or because the queue had no limit, to what their runners run.
INSERT INTO windlass.quotas AS quota (queue, runner, slots)
SELECT :queue::text, lease.runner, (
    SELECT count(*) FROM windlass.held_jobs AS job WHERE job.runner = lease.runner AND job.queue || '' = :queue::text
)
FROM windlass.leases AS lease
WHERE lease.expires_at > :now AND NOT EXISTS (
    SELECT 1 FROM windlass.quotas AS counted
    WHERE counted.queue = :queue::text AND counted.runner = lease.runner AND counted.slots IS NOT NULL
)
ORDER BY lease.runner
ON CONFLICT (queue, runner) DO UPDATE SET slots = coalesce(quota.slots, excluded.slots)

-- name: sum_quotas
SELECT coalesce(sum(slots), 0)::bigint FROM windlass.quotas WHERE queue = :queue::text

-- name: lock_quotas
-- Lock the quotas of other runners, in order; those of runners that are claiming are skipped.
SELECT runner FROM windlass.quotas
WHERE queue = :queue::text AND runner <> :runner::text AND slots > 0 ORDER BY runner FOR NO KEY UPDATE SKIP LOCKED

-- name: trim_quotas
-- Reduce locked quotas to what their runners run; returns how many slots that frees.
WITH used AS MATERIALIZED (
    SELECT holder.runner, (
        SELECT count(*) FROM windlass.held_jobs AS job WHERE job.runner = holder.runner AND job.queue || '' = :queue::text
    ) AS jobs
    FROM unnest(:runners::text[]) AS holder (runner)
), trimmed AS (
    UPDATE windlass.quotas AS quota SET slots = used.jobs FROM used
    WHERE quota.queue = :queue::text AND quota.runner = used.runner AND quota.slots > used.jobs
)
SELECT coalesce(sum(quota.slots - used.jobs), 0)::bigint
FROM used JOIN windlass.quotas AS quota ON quota.queue = :queue::text AND quota.runner = used.runner
WHERE quota.slots > used.jobs

-- name: add_slots
UPDATE windlass.quotas SET slots = slots + :slots::integer WHERE queue = :queue::text AND runner = :runner::text

-- name: drop_quotas
-- Delete quotas of dead runners after their jobs were put back. A quota is left for the next call if a late claim has locked
-- it, if jobs run under it, or if its tokens are still valid.
DELETE FROM windlass.quotas WHERE /*plain*/ctid = ANY(ARRAY(/*end*//*yugabyte (queue, runner) IN (*/
    SELECT quota./*plain*/ctid/*end*//*yugabyte queue, quota.runner*/ FROM windlass.quotas AS quota
    WHERE quota.runner = ANY(:runners::text[]) AND quota.until < :now
    AND NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = quota.runner)
    AND NOT EXISTS (SELECT 1 FROM windlass.held_jobs AS job WHERE job.runner = quota.runner OFFSET 0)
    FOR UPDATE SKIP LOCKED
)/*plain*/)/*end*/

-- name: orphan_quotas
SELECT DISTINCT quota.runner FROM windlass.quotas AS quota
WHERE NOT EXISTS (SELECT 1 FROM windlass.leases AS lease WHERE lease.runner = quota.runner)
