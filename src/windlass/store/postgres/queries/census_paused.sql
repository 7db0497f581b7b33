-- Queues that may not be claimed from now.
SELECT name FROM windlass.queues WHERE paused AND (paused_until IS NULL OR paused_until > :now) ORDER BY name
