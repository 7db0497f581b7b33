-- Queues that may not be claimed from now.
SELECT name FROM windlass_queues WHERE paused = 1 AND (paused_until IS NULL OR paused_until > :now)
