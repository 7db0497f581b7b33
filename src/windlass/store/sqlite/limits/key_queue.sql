-- name: key_queue_heads
-- For each key in [[queue, key], …] with waiting jobs: its taken key slots, and its first :max_jobs jobs as [id, limit, has a rate].
SELECT wanted.value ->> 0, wanted.value ->> 1, (
    SELECT json_group_array(key_slot) FROM windlass_jobs INDEXED BY windlass_jobs_key_slot
    WHERE queue = wanted.value ->> 0 AND concurrency_key = wanted.value ->> 1 AND key_slot IS NOT NULL
), (
    SELECT json_group_array(json_array(id, key_limit, key_rate IS NOT NULL)) FROM (
        SELECT id, key_limit, key_rate FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE status = 'blocked' AND reason = 'waits for its concurrency key'
        AND queue = wanted.value ->> 0 AND concurrency_key = wanted.value ->> 1
        ORDER BY CASE WHEN key_strict THEN 0 ELSE sort_priority END, rank, id LIMIT :max_jobs
    )
)
FROM json_each(:key_queues) AS wanted
WHERE EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
    WHERE status = 'blocked' AND reason = 'waits for its concurrency key'
    AND queue = wanted.value ->> 0 AND concurrency_key = wanted.value ->> 1
)

-- name: key_use
-- For each key in [[queue, key], …] that is in use: its taken key slots, and the position of its first waiting job. Materialized,
-- because each subquery would otherwise run again for its comparison with NULL.
WITH used AS MATERIALIZED (
    SELECT wanted.value ->> 0 AS queue, wanted.value ->> 1 AS key, (
        SELECT nullif(json_group_array(key_slot), '[]') FROM windlass_jobs INDEXED BY windlass_jobs_key_slot
        WHERE queue = wanted.value ->> 0 AND concurrency_key = wanted.value ->> 1 AND key_slot IS NOT NULL
    ) AS taken, (
        SELECT json_array(CASE WHEN key_strict THEN 0 ELSE sort_priority END, rank, id)
        FROM windlass_jobs INDEXED BY windlass_jobs_waiting_for_key
        WHERE status = 'blocked' AND reason = 'waits for its concurrency key'
        AND queue = wanted.value ->> 0 AND concurrency_key = wanted.value ->> 1
        ORDER BY CASE WHEN key_strict THEN 0 ELSE sort_priority END, rank, id LIMIT 1
    ) AS head
    FROM json_each(:key_queues) AS wanted
)
SELECT queue, key, taken, head FROM used WHERE taken IS NOT NULL OR head IS NOT NULL

-- name: assign_key_slots
-- The jobs of [[id, key slot], …] become pending, behind those that are pending already.
UPDATE windlass_jobs SET status = 'pending', reason = NULL, key_slot = taken.value ->> 1, rank = :now, updated_at = :now
FROM json_each(:batch) AS taken WHERE windlass_jobs.id = taken.value ->> 0

-- name: set_rated
-- From now on claims from this queue check the rates of keys.
UPDATE windlass_queues SET rated = 1 WHERE name = :queue AND rated = 0
