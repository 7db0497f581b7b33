-- The meters of a stretch of time, as they were recorded.
SELECT slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE slot >= :since AND slot < :until ORDER BY slot, queue COLLATE "C", type COLLATE "C"
