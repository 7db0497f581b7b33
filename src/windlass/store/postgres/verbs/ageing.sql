-- Queues with ageing.
SELECT name, ageing FROM windlass.queues WHERE ageing IS NOT NULL
