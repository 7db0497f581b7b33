-- Queues in which jobs move up as they wait.
SELECT name, ageing FROM windlass.queues WHERE ageing IS NOT NULL
