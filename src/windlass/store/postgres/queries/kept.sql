-- How long queues keep completed jobs, as far as they are known.
SELECT name, keep_completed FROM windlass.queues WHERE name = ANY (:queues::text[])
