-- name: examine_buckets
-- The number of buckets, of queues and priorities, of those without a watermark in each bucket, and how many jobs the
-- largest bucket has among the first of each.
SELECT (SELECT count(*) FROM windlass.due_watermark), (SELECT count(*) FROM windlass.watermarks WHERE bucket = 0),
    (SELECT count(*) FROM windlass.watermarks WHERE bucket = 0) - (SELECT count(*) FROM windlass.places),
    coalesce(max(part.jobs), 0), coalesce(sum(part.jobs), 0)
FROM windlass.due_watermark AS bucket CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (SELECT FROM windlass.jobs WHERE jobs.bucket = bucket.bucket LIMIT :most::integer) AS first
) AS part

-- name: examine_conflicts
-- Conflicts of the last hour.
SELECT coalesce(sum(conflicts), 0)::bigint, coalesce(sum(lock_waits), 0)::bigint
FROM windlass.conflicts WHERE interval_start >= :now - 3600000000
