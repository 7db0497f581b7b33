-- How many are about to leave history, by queue and status.
SELECT queue, status, count(*) FROM windlass_history
WHERE id IN (SELECT value FROM json_each(:ids)) GROUP BY queue, status
