-- Queues in which jobs move up as they wait.
SELECT name, ageing FROM windlass_queues WHERE ageing IS NOT NULL
