-- Its claims must ask the rates of keys from now on.
UPDATE windlass_queues SET rated = 1 WHERE name = :queue AND rated = 0
