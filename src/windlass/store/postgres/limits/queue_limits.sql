-- name: queue_loads
-- Limited queues: how many jobs run under a lease, and their buckets.
SELECT queue.name, queue.max_concurrency, queue.rate_limit, CASE WHEN queue.max_concurrency IS NOT NULL THEN (
    SELECT coalesce(sum((
        SELECT count(*) FROM windlass.jobs AS job
        WHERE job.worker = lease.runner AND job.status = 'running' AND job.queue || '' = queue.name
    )), 0) FROM windlass.leases AS lease
) END AS running, bucket.credit, bucket.period, bucket.at, :now AS now
FROM windlass.queues AS queue LEFT JOIN windlass.buckets AS bucket
    ON bucket.queue = queue.name AND bucket.key = '' AND queue.rate_limit IS NOT NULL
WHERE queue.name = ANY(:queues::text[]) AND queue.limited

-- name: has_work
-- Whether there is anything to claim, a dirty key, or a due job.
SELECT EXISTS (
    SELECT 1 FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = watermark.queue AND job.sort_priority = watermark.sort_priority AND job.rank >= watermark.rank
        AND job.status = 'pending' AND (:types::text[] IS NULL OR job.type = ANY(:types::text[])) LIMIT 1
    ) AS found WHERE watermark.queue = ANY(:queues::text[]) AND NOT EXISTS (
        SELECT 1 FROM windlass.queues AS queue
        WHERE queue.name = watermark.queue AND queue.paused AND (queue.paused_until IS NULL OR queue.paused_until > :now)
    )
) OR EXISTS (
    SELECT 1 FROM windlass.jobs
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
    AND run_at >= (SELECT due FROM windlass.due_watermark)
)
OR EXISTS (SELECT 1 FROM windlass.dirty_keys WHERE queue = ANY(:queues::text[]))
