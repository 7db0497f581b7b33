-- Add watermarks where there are none, in order. They are searched first: in a caller's transaction with an old
-- snapshot an INSERT that conflicts with a changed row is a serialization failure.
INSERT INTO windlass.watermarks (queue, sort_priority)
SELECT new.queue, new.sort_priority
FROM unnest(:queues::text[], :sort_priorities::integer[]) WITH ORDINALITY AS new (queue, sort_priority, place)
WHERE NOT EXISTS (SELECT 1 FROM windlass.watermarks AS old WHERE old.queue = new.queue AND old.sort_priority = new.sort_priority)
ORDER BY new.place
ON CONFLICT DO NOTHING
