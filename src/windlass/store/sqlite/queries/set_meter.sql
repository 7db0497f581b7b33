-- Write a meter, with what was there already added to it.
INSERT OR REPLACE INTO windlass_meters
    (slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
VALUES (:slot, :queue, :type, :completed, :failed, :dead, :cancelled, :snoozed, :crashed, :wait, :run)
