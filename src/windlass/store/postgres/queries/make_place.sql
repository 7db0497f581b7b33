-- A queue is used with this urgency for the first time.
INSERT INTO windlass.floors (queue, urgency) VALUES (:queue::text, :urgency::integer) ON CONFLICT DO NOTHING
