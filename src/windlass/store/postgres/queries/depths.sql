-- How many jobs there were in a stretch of time: in one queue or each, and in all.
SELECT slot, queue, looks, jobs, most, oldest
FROM windlass.depths
WHERE step = :step AND slot >= :since AND slot < :until AND (:queue::text IS NULL OR queue IN ('', :queue::text))
ORDER BY slot, queue COLLATE "C"
