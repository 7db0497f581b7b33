-- Delete live jobs that are also in history: history wins.
WITH gone AS (
    DELETE FROM windlass.jobs AS twin WHERE twin.id = ANY (:ids::uuid[])
        AND EXISTS (SELECT FROM windlass.history AS old WHERE old.id = twin.id OFFSET 0)
    RETURNING *
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM gone WHERE slot IS NOT NULL
)
SELECT id::text, queue, idempotency_key, idempotency_window, has_dependents FROM gone
