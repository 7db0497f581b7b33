-- Lock queues that are about to be changed, in order.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues
WHERE name = ANY(:names::text[]) ORDER BY name COLLATE "C" FOR UPDATE
