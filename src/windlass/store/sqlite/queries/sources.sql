-- The status and queue of jobs that others are to wait for.
SELECT id, status, queue FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT id, status, queue FROM windlass_history WHERE id IN (SELECT value FROM json_each(:ids))
