-- Parked jobs of one type by queue, among the first :limit.
SELECT queue, count(*) FROM (
    SELECT queue FROM windlass_jobs INDEXED BY windlass_jobs_parked
    WHERE status = 'blocked' AND reason = 'no worker for type' AND type = :type LIMIT :limit
) GROUP BY queue
