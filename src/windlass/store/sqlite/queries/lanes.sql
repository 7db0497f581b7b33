-- Tenants who have jobs waiting at one priority of a fair queue, from :from up to but without :until, in the order of
-- their names: one seek for each.
WITH RECURSIVE lanes (lane) AS (
    SELECT (
        SELECT lane FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE queue = :queue AND urgency = :urgency AND lane >= :from AND status = 'pending' ORDER BY lane LIMIT 1
    )
    UNION ALL
    SELECT (
        SELECT lane FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE queue = :queue AND urgency = :urgency AND lane > lanes.lane AND status = 'pending' ORDER BY lane LIMIT 1
    ) FROM lanes WHERE lanes.lane IS NOT NULL AND (:until IS NULL OR lanes.lane < :until) LIMIT :limit + 1
)
SELECT '[' || group_concat(json_quote(lane)) || ']' FROM (
    SELECT lane FROM lanes WHERE lane IS NOT NULL AND (:until IS NULL OR lane < :until) LIMIT :limit
)
