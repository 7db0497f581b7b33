-- Write meters.
UPDATE windlass.meters AS meter SET
    completed = new.completed, failed = new.failed, dead = new.dead, cancelled = new.cancelled,
    snoozed = new.snoozed, crashed = new.crashed, wait = new.wait, run = new.run
FROM unnest(
    :queues::text[], :types::text[], :completeds::bigint[], :faileds::bigint[], :deads::bigint[],
    :cancelleds::bigint[], :snoozeds::bigint[], :crasheds::bigint[], :waits::text[], :runs::text[]
) AS new (queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
WHERE meter.interval_start = :slot AND meter.queue = new.queue AND meter.type = new.type
