-- Raise the due watermark to :due or to the first scheduled job, in a snapshot in which every transaction that had
-- begun when :due was noted has ended. With :whole the search begins at 0, and may lower it.
UPDATE windlass.due_watermark AS f
SET due = least(:due::bigint, (
    SELECT job.run_at FROM windlass.jobs AS job
    WHERE job.status IN ('scheduled', 'failed') AND job.run_at < :due::bigint
        AND job.run_at >= CASE WHEN :whole::boolean THEN 0 ELSE (SELECT due FROM windlass.due_watermark WHERE one = 1) END
    ORDER BY job.run_at, job.id LIMIT 1
))
WHERE f.one = 1 AND pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= :ahead::bigint
RETURNING due
