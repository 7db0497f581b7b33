-- Every queue: a row is made when it is declared, changed, paused or first used.
SELECT name FROM windlass_queues ORDER BY name
