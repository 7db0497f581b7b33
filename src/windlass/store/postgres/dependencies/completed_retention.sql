-- How long queues keep completed jobs.
SELECT name, keep_completed FROM windlass.queues WHERE name = ANY (:queues::text[])
