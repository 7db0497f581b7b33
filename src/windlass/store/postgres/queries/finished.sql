-- How jobs have ended.
SELECT id::text, status, queue, urgency, idempotency_key, waits FROM windlass.history WHERE id = ANY (:ids::uuid[])
