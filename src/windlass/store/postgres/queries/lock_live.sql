-- Jobs that have not ended, each locked, in order. One that is settled while we wait for it is not among them.
SELECT id::text, status, reason, run_at, rank, queue, urgency, idempotency_key, concurrency_key, slot
FROM windlass.jobs AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id FOR UPDATE
