-- Add empty meters where there are none, in order.
INSERT INTO windlass.meters (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT :slot::bigint, new.queue, new.type, 0, 0, 0, 0, 0, 0, '{}', '{}'
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS new (queue, type, place) ORDER BY new.place
ON CONFLICT (interval_start, queue, type) DO NOTHING
