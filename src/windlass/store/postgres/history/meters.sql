-- The meters from an interval on.
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE interval_start >= :since ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"
