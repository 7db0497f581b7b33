-- How many are about to leave history, by queue and status, and for how many parents they wait yet.
SELECT queue, status, count(*), sum(waits) FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY queue, status
