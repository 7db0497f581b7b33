-- Every queue: a row is made when it is declared, changed, paused or first used.
SELECT name, declared, changed, paused, paused_until, closed, :now FROM windlass.queues ORDER BY name COLLATE "C"
