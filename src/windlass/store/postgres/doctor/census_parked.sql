-- Parked jobs of the next type, by queue, among the first :limit.
SELECT type, queue, count(*) FROM (
    SELECT type, queue FROM windlass.jobs
    WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = (
        SELECT type FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1
    ) ORDER BY id LIMIT :limit
) AS parked
GROUP BY type, queue ORDER BY queue
