-- Live jobs that are in history too: they have ended, and only what is recorded of that stands. By the ids of the call.
WITH gone AS (
    DELETE FROM windlass.jobs AS twin WHERE twin.id = ANY (:ids::uuid[])
        AND EXISTS (SELECT FROM windlass.history AS old WHERE old.id = twin.id OFFSET 0)
    RETURNING *
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT DISTINCT queue, concurrency_key FROM gone WHERE slot IS NOT NULL
)
SELECT id::text, queue, idempotency_key, idempotency_window, heirs FROM gone
