-- What is recorded of a job's attempts, wherever it is.
SELECT attempt, status, attempts FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT attempt, status, attempts FROM windlass_history WHERE id = :id
