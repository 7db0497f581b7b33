-- These queues, those of them that exist.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues WHERE name = ANY(:names::text[])
