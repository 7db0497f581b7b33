-- The meters of all slots from one on.
SELECT slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE slot >= :since ORDER BY slot, queue COLLATE "C", type COLLATE "C"
