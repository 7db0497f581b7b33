-- name: number_of_buckets
SELECT count(*)::integer FROM windlass.due_watermark

-- name: raise_number_of_buckets
-- Add buckets, with the watermarks of all queues in them and the rows that their claims lock. In one statement, because an
-- enqueue stores nothing if its queue has no watermark in some bucket.
WITH part AS MATERIALIZED (
    SELECT bucket FROM generate_series(0, :buckets::integer - 1) AS bucket
), due AS (
    INSERT INTO windlass.due_watermark (bucket, due) SELECT bucket, 0 FROM part ORDER BY bucket
    ON CONFLICT (bucket) DO NOTHING
), lock AS (
    INSERT INTO windlass.claim_locks (queue, bucket)
    SELECT DISTINCT level.queue, part.bucket FROM windlass.watermarks AS level CROSS JOIN part
    WHERE level.bucket = 0 ORDER BY 1, 2
    ON CONFLICT DO NOTHING
)
INSERT INTO windlass.watermarks (queue, sort_priority, bucket)
SELECT level.queue, level.sort_priority, part.bucket FROM windlass.watermarks AS level CROSS JOIN part
WHERE level.bucket = 0 ORDER BY 1, 2, 3
ON CONFLICT DO NOTHING
