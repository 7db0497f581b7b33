-- Queues that keep nothing of some status.
SELECT name FROM windlass_queues WHERE keep_completed = 0 OR keep_cancelled = 0 OR keep_dead = 0
