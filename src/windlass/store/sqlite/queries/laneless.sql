-- A queue that has become fair, and from which id on its jobs must still be told whose turn they wait for.
SELECT name, laning FROM windlass_queues WHERE fair AND laning IS NOT NULL ORDER BY name LIMIT 1
