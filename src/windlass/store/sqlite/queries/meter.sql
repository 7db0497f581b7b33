-- What is there of one type in one queue and slot: a histogram can only be added to in code.
SELECT slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass_meters WHERE slot = :slot AND queue = :queue AND type = :type
