-- How far a queue that has become fair has got; NULL: all its jobs are in lanes.
UPDATE windlass_queues SET laning = :until WHERE name = :queue
