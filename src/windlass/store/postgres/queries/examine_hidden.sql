-- Pending jobs that no claim would find: below their floor, or in a place that has none.
SELECT count(*) FROM windlass.jobs AS job WHERE status = 'pending' AND NOT EXISTS (
    SELECT FROM windlass.floors AS floor
    WHERE floor.queue = job.queue AND floor.urgency = job.urgency AND floor.rank <= job.rank
)
