-- name: add_meters
-- Add empty meters where there are none, in order.
INSERT INTO windlass.meters (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT :slot::bigint, new.queue, new.type, 0, 0, 0, 0, 0, 0, '{}', '{}'
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS new (queue, type, place) ORDER BY new.place
ON CONFLICT (interval_start, queue, type) DO NOTHING

-- name: lock_meters
-- Lock meters, in order: histograms are added in code.
SELECT meter.interval_start, meter.queue, meter.type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS wanted (queue, type, place)
JOIN windlass.meters AS meter ON meter.interval_start = :slot AND meter.queue = wanted.queue AND meter.type = wanted.type
ORDER BY wanted.place FOR UPDATE OF meter

-- name: set_meters
UPDATE windlass.meters AS meter SET
    completed = new.completed, failed = new.failed, dead = new.dead, cancelled = new.cancelled,
    snoozed = new.snoozed, crashed = new.crashed, wait = new.wait, run = new.run
FROM unnest(
    :queues::text[], :types::text[], :completeds::bigint[], :faileds::bigint[], :deads::bigint[],
    :cancelleds::bigint[], :snoozeds::bigint[], :crasheds::bigint[], :waits::text[], :runs::text[]
) AS new (queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
WHERE meter.interval_start = :slot AND meter.queue = new.queue AND meter.type = new.type

-- name: meters
SELECT interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM windlass.meters WHERE interval_start >= :since ORDER BY interval_start, queue COLLATE "C", type COLLATE "C"

-- name: oldest
-- How long the first pending job of each queue has waited, by the head of each priority.
SELECT place.queue, greatest(0, :now - min(head.rank))
FROM windlass.watermarks AS place CROSS JOIN LATERAL (
    SELECT rank FROM windlass.jobs
    WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
    ORDER BY rank, id LIMIT 1
) AS head
GROUP BY place.queue
