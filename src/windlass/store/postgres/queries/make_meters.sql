-- Rows to add to, where there are none yet; in one order, so that nobody waits in a circle.
INSERT INTO windlass.meters (slot, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT :slot::bigint, new.queue, new.type, 0, 0, 0, 0, 0, 0, '{}', '{}'
FROM unnest(:queues::text[], :types::text[]) WITH ORDINALITY AS new (queue, type, place) ORDER BY new.place
ON CONFLICT (slot, queue, type) DO NOTHING
