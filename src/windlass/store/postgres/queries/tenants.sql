-- Tenants that have jobs waiting in one place of a fair queue, in their order from one on: from each to the next in the
-- index, however many jobs each of them has.
WITH RECURSIVE waiting (lane, n) AS (
    (
        SELECT lane, 1 FROM windlass.jobs
        WHERE queue COLLATE "C" = :queue::text AND urgency = :urgency::integer AND status = 'pending' AND lane IS NOT NULL
        AND lane >= :from::text
        ORDER BY lane, rank, id LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT job.lane FROM windlass.jobs AS job
        WHERE job.queue COLLATE "C" = :queue::text AND job.urgency = :urgency::integer AND job.status = 'pending'
        AND job.lane IS NOT NULL AND job.lane > waiting.lane
        ORDER BY job.lane, job.rank, job.id LIMIT 1
    ), n + 1
    FROM waiting WHERE waiting.lane IS NOT NULL AND n < :limit::integer
)
SELECT lane FROM waiting WHERE lane IS NOT NULL
