-- The meters in a range of time.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE interval_start >= :since AND interval_start < :until ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"
