-- Whose jobs wait in a fair queue at one priority: a seek for each tenant, however many jobs each has.
WITH RECURSIVE walk (lane, n) AS (
    SELECT (
        SELECT lane FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE :fair AND lane IS NOT NULL AND status = 'pending' AND queue = :queue AND urgency = :urgency
        ORDER BY lane LIMIT 1
    ), 1
    UNION ALL
    SELECT (
        SELECT lane FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE lane IS NOT NULL AND status = 'pending' AND queue = :queue AND urgency = :urgency AND lane > walk.lane
        ORDER BY lane LIMIT 1
    ), n + 1 FROM walk WHERE walk.lane IS NOT NULL AND n < :most_tenants
)
SELECT lane FROM walk WHERE lane IS NOT NULL
