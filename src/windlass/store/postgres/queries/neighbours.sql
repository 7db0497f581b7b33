-- Whose jobs wait in a fair queue at one priority: a seek for each tenant, however many jobs each has. With the floor, so
-- that what nobody has cleaned yet is stepped over inside the index.
WITH RECURSIVE bottom AS MATERIALIZED (
    SELECT rank FROM windlass.floors WHERE :fair::boolean AND queue = :queue::text AND urgency = :urgency::integer
), walk (lane, n) AS (
    SELECT (
        SELECT lane FROM windlass.jobs
        WHERE lane IS NOT NULL AND status = 'pending' AND queue = :queue::text AND urgency = :urgency::integer
        AND rank >= bottom.rank
        ORDER BY lane LIMIT 1
    ), 1 FROM bottom
    UNION ALL
    SELECT (
        SELECT lane FROM windlass.jobs
        WHERE lane IS NOT NULL AND status = 'pending' AND queue = :queue::text AND urgency = :urgency::integer
        AND lane > walk.lane AND rank >= bottom.rank
        ORDER BY lane LIMIT 1
    ), n + 1 FROM walk CROSS JOIN bottom WHERE walk.lane IS NOT NULL AND n < :most_tenants::integer
)
SELECT lane FROM walk WHERE lane IS NOT NULL
