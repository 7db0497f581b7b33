-- Queues are used with these urgencies, some of them for the first time. They are looked for first: for a caller's
-- transaction with an old snapshot an insert that meets a row which was changed since is a serialization failure. In
-- their order, so that nobody waits in a circle.
INSERT INTO windlass.floors (queue, urgency)
SELECT new.queue, new.urgency
FROM unnest(:queues::text[], :urgencies::integer[]) WITH ORDINALITY AS new (queue, urgency, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.floors AS old WHERE old.queue = new.queue AND old.urgency = new.urgency)
ORDER BY new.place
ON CONFLICT DO NOTHING
