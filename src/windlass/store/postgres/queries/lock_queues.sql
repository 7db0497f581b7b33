-- Queues that are about to be changed: locked in one order, so that nobody waits in a circle.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues
WHERE name = ANY(:names::text[]) ORDER BY name COLLATE "C" FOR UPDATE
