-- Lock live jobs, in order. A job that is settled while we wait is not among them.
SELECT id::text, status, reason, run_at, rank, queue, sort_priority, idempotency_key, concurrency_key, slot
FROM windlass.jobs AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR UPDATE
