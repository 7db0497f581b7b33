-- name: examine_buckets
-- The number of buckets; of pairs of queue and priority; of pairs without a watermark in every bucket; and, counting at
-- most :most jobs per bucket, the jobs of the largest bucket and of all.
SELECT (SELECT count(*) FROM windlass.due_watermark), (SELECT count(*) FROM windlass.watermarks WHERE bucket = 0),
    (SELECT count(*) FROM windlass.watermarks WHERE bucket = 0) - (SELECT count(*) FROM windlass.highest_watermarks),
    coalesce(max(part.jobs), 0), coalesce(sum(part.jobs), 0)
FROM windlass.due_watermark AS bucket CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (SELECT FROM windlass.jobs WHERE jobs.bucket = bucket.bucket LIMIT :most::integer) AS first
) AS part

-- name: examine_conflicts
-- Conflicts of the last hour.
SELECT coalesce(sum(conflicts), 0)::bigint, coalesce(sum(lock_waits), 0)::bigint
FROM windlass.conflicts WHERE interval_start >= :now - 3600000000
