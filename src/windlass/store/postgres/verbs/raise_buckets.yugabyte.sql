-- name: number_of_buckets
SELECT count(*)::integer FROM windlass.due_watermark

-- name: add_due_watermarks
-- Buckets that there were not before: from here on each new queue gets watermarks in them.
INSERT INTO windlass.due_watermark (bucket, due) SELECT bucket, 0 FROM generate_series(0, :buckets::integer - 1) AS bucket
ON CONFLICT (bucket) DO NOTHING

-- name: add_watermarks_of_buckets
-- Watermarks of all queues in buckets that they have none in, and what their claims lock.
WITH lock AS (
    INSERT INTO windlass.claim_locks (queue, bucket)
    SELECT DISTINCT place.queue, part.bucket FROM windlass.watermarks AS place CROSS JOIN windlass.due_watermark AS part
    WHERE place.bucket = 0 ORDER BY 1, 2
    ON CONFLICT DO NOTHING
)
INSERT INTO windlass.watermarks (queue, sort_priority, bucket)
SELECT place.queue, place.sort_priority, part.bucket FROM windlass.watermarks AS place CROSS JOIN windlass.due_watermark AS part
WHERE place.bucket = 0 ORDER BY 1, 2, 3
ON CONFLICT DO NOTHING
