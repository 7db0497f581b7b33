-- The places of fair queues, and their floors.
SELECT floor.queue, floor.urgency, floor.rank FROM windlass.queues AS queue
JOIN windlass.floors AS floor ON floor.queue = queue.name WHERE queue.fair ORDER BY floor.queue, floor.urgency
