-- What calling jobs off needs to know of them.
SELECT id, queue, idempotency_key, idempotency_window, concurrency_key FROM windlass_jobs
WHERE id IN (SELECT value ->> 0 FROM json_each(:batch))
