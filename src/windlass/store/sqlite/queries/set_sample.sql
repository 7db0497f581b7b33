-- Keep a sample, unless one that says as much is there: what is made again from fewer parts is not the truth.
INSERT INTO windlass_samples
    (step, slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
VALUES (:step, :slot, :queue, :type, :completed, :failed, :dead, :cancelled, :snoozed, :crashed, :wait, :run)
ON CONFLICT (step, slot, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > completed + failed + dead + cancelled + snoozed + crashed
