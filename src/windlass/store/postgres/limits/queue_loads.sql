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
