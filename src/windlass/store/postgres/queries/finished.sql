-- How jobs have ended.
SELECT id::text, status, queue, urgency, idempotency_key FROM windlass.history WHERE id = ANY (:ids::uuid[])
