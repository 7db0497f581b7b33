-- Queues that are paused now.
SELECT name FROM windlass.queues WHERE paused AND (paused_until IS NULL OR paused_until > :now) ORDER BY name
