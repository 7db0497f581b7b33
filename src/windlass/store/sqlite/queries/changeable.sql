-- What a change needs to know of a job, wherever it is: a finished one has no rank.
SELECT status, reason, run_at, rank, queue, idempotency_key FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT status, reason, run_at, 0, queue, idempotency_key FROM windlass_history WHERE id = :id
