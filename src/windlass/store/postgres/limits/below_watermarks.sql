-- The lowest pending jobs that no claim would find, because they are below their watermark, or have none. Scans all
-- dead entries below, so it runs rarely.
WITH RECURSIVE place AS (
    (
        SELECT queue, sort_priority, rank FROM windlass.jobs WHERE status = 'pending' ORDER BY queue, sort_priority, rank, id LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.sort_priority, next.rank FROM place CROSS JOIN LATERAL (
        SELECT job.queue, job.sort_priority, job.rank FROM windlass.jobs AS job
        WHERE job.status = 'pending' AND (job.queue, job.sort_priority) > (place.queue, place.sort_priority)
        ORDER BY job.queue, job.sort_priority, job.rank, job.id LIMIT 1
    ) AS next
)
SELECT place.queue, place.sort_priority, place.rank
FROM place LEFT JOIN windlass.watermarks AS watermark ON watermark.queue = place.queue AND watermark.sort_priority = place.sort_priority
WHERE watermark.rank IS NULL OR place.rank < watermark.rank
