-- What a change needs to know of a job, wherever it is: a finished one has neither rank nor slot.
SELECT status, reason, run_at, rank, queue, idempotency_key, concurrency_key, slot FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, reason, run_at, 0, queue, idempotency_key, concurrency_key, NULL FROM windlass_history WHERE id = :id
