-- replaces: lock_prunable
-- Lock finished jobs whose retention is over, the oldest of all buckets first; locked ones are skipped.
SELECT job.id::text FROM windlass.history AS job WHERE job.id = ANY (ARRAY(
    SELECT head.id FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT id, drop_at FROM windlass.history WHERE bucket = part.bucket AND drop_at <= :now
        ORDER BY drop_at LIMIT :limit::integer
    ) AS head ORDER BY head.drop_at LIMIT :limit::integer
)) FOR UPDATE SKIP LOCKED

-- name: prune_tombstones
-- Delete tombstones that have expired, the oldest of all buckets first.
DELETE FROM windlass.tombstones WHERE (id, part) IN (
    SELECT head.id, head.part FROM windlass.due_watermark AS bucket CROSS JOIN LATERAL (
        SELECT id, part, until FROM windlass.tombstones WHERE tombstones.bucket = bucket.bucket AND until <= :now
        ORDER BY until LIMIT :limit::integer
    ) AS head ORDER BY head.until LIMIT :limit::integer
)

-- name: prune_conflicts
-- Delete counts of conflicts that are older than a day.
DELETE FROM windlass.conflicts WHERE (interval_start, process) IN (
    SELECT interval_start, process FROM windlass.conflicts WHERE interval_start < :now - 86400000000
    ORDER BY interval_start LIMIT :limit::integer
)
