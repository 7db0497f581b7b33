-- Queue depths in a range of time: of one queue or each, and of all together.
SELECT interval_start, queue, observations, jobs, max_jobs, oldest
FROM windlass.queue_depths
WHERE step = :step AND interval_start >= :since AND interval_start < :until AND (:queue::text IS NULL OR queue IN ('', :queue::text))
ORDER BY interval_start, queue COLLATE "C"
