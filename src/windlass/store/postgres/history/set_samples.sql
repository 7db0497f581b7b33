-- Write samples, unless there are some with as many attempts; in order.
INSERT INTO windlass.samples AS kept
    (step, interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT :step::bigint, new.interval_start, new.queue, new.type, new.completed, new.failed, new.dead, new.cancelled, new.snoozed,
    new.crashed, new.wait, new.run
FROM unnest(
    :slots::bigint[], :queues::text[], :types::text[], :completeds::bigint[], :faileds::bigint[], :deads::bigint[],
    :cancelleds::bigint[], :snoozeds::bigint[], :crasheds::bigint[], :waits::text[], :runs::text[]
) WITH ORDINALITY AS new (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run, place)
ORDER BY new.place
ON CONFLICT (step, interval_start, queue, type) DO UPDATE SET
    completed = excluded.completed, failed = excluded.failed, dead = excluded.dead, cancelled = excluded.cancelled,
    snoozed = excluded.snoozed, crashed = excluded.crashed, wait = excluded.wait, run = excluded.run
WHERE excluded.completed + excluded.failed + excluded.dead + excluded.cancelled + excluded.snoozed + excluded.crashed
    > kept.completed + kept.failed + kept.dead + kept.cancelled + kept.snoozed + kept.crashed
