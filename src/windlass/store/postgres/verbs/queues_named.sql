-- Queues by name.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues WHERE name = ANY(:names::text[])
