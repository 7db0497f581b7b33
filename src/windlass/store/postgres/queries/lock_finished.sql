-- The same, each locked, in order: nobody else revives or drops them now.
SELECT id::text, status, queue, urgency, idempotency_key, waits FROM windlass.history AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.shelf FOR UPDATE
