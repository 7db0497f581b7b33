-- Pending jobs that no claim would find: below their watermark, or without one.
SELECT count(*) FROM windlass.jobs AS job WHERE status = 'pending' AND NOT EXISTS (
    SELECT FROM windlass.watermarks AS watermark
    WHERE watermark.queue = job.queue AND watermark.sort_priority = job.sort_priority AND watermark.rank <= job.rank
)
