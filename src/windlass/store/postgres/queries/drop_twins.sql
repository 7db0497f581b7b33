-- Live jobs that are in history too: they have ended, and only what is recorded of that stands. By the ids of the call.
DELETE FROM windlass.jobs AS twin WHERE twin.id = ANY (:ids::uuid[])
    AND EXISTS (SELECT FROM windlass.history AS old WHERE old.id = twin.id)
RETURNING twin.id::text, twin.queue, twin.idempotency_key, twin.idempotency_window
