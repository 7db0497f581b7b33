-- Finished jobs, locked in order against revival and dropping.
SELECT id::text, status, queue, sort_priority, idempotency_key, pending_parents FROM windlass.history AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.partition FOR UPDATE
