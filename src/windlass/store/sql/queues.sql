-- name: named_queues
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues WHERE name = ANY(:names::text[])

-- name: lock_queues
-- Lock queues that are about to be changed, in order.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues
WHERE name = ANY(:names::text[]) ORDER BY name COLLATE "C" FOR UPDATE

-- name: all_queues
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues ORDER BY name COLLATE "C"
