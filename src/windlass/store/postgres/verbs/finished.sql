-- Finished jobs.
SELECT id::text, status, queue, sort_priority, idempotency_key, pending_parents FROM windlass.history WHERE id = ANY (:ids::uuid[])
