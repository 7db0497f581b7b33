-- Which of these queues are closed.
SELECT name FROM windlass.queues WHERE name = ANY(:names::text[]) AND closed
