-- All queues.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues ORDER BY name COLLATE "C"
