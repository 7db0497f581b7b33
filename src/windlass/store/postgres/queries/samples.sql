-- The samples of a stretch of time: of one queue, one type or all; and those that have no name, to see what was made.
SELECT slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.samples
WHERE step = :step AND slot >= :since AND slot < :until
    AND (:queue::text IS NULL OR queue IN ('', :queue::text)) AND (:type::text IS NULL OR type IN ('', :type::text))
ORDER BY slot, queue COLLATE "C", type COLLATE "C"
