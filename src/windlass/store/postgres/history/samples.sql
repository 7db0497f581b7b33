-- Samples in a range of time: of one queue, one type or all; and those without a name, which show what was sampled.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.samples
WHERE step = :step AND interval_start >= :since AND interval_start < :until
    AND (:queue::text IS NULL OR queue IN ('', :queue::text)) AND (:type::text IS NULL OR type IN ('', :type::text))
ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"
