-- Which of these queues take no new jobs.
SELECT name FROM windlass.queues WHERE name = ANY(:names::text[]) AND closed
