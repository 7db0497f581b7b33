-- How many jobs there were in a stretch of time: in one queue or each, and in all.
SELECT slot, queue, looks, jobs, most, oldest
FROM windlass_depths
WHERE step = :step AND slot >= :since AND slot < :until AND (:queue IS NULL OR queue IN ('', :queue))
ORDER BY slot, queue
