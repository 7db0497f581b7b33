-- Queues that keep nothing of what was completed.
SELECT name FROM windlass_queues WHERE keep_completed = 0
