-- Nothing waits for a time before `due` if this look, in a snapshot that has every transaction that had begun when `due`
-- was noted, finds nothing. What it finds is the floor: also below the old one, if the look is over everything.
UPDATE windlass.due_floor AS f
SET due = least(:due::bigint, (
    SELECT job.run_at FROM windlass.jobs AS job
    WHERE job.status IN ('scheduled', 'failed') AND job.run_at < :due::bigint
        AND job.run_at >= CASE WHEN :whole::boolean THEN 0 ELSE (SELECT due FROM windlass.due_floor WHERE one = 1) END
    ORDER BY job.run_at, job.id LIMIT 1
))
WHERE f.one = 1 AND pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= :ahead::bigint
RETURNING due
