-- How long queues keep completed jobs, as far as they are known.
SELECT name, keep_completed FROM windlass_queues WHERE name IN (SELECT value FROM json_each(:queues))
