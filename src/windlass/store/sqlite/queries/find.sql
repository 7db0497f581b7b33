-- Where a job is.
SELECT status, queue, idempotency_key, 0 FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, queue, idempotency_key, 1 FROM windlass_history WHERE id = :id
