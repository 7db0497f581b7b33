-- The samples of a stretch of time: of one queue, one type or all; and those that have no name, to see what was made.
SELECT slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_samples
WHERE step = :step AND slot >= :since AND slot < :until
    AND (:queue IS NULL OR queue IN ('', :queue)) AND (:type IS NULL OR type IN ('', :type))
ORDER BY slot, queue, type
