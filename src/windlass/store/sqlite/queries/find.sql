-- Where a job is.
SELECT status, queue, idempotency_key, 0, concurrency_key, waits FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, queue, idempotency_key, 1, concurrency_key, waits FROM windlass_history WHERE id = :id
