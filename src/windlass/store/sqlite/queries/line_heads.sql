-- Of each key in [[queue, key], …] that has a line: the slots that are taken, and the first :most as [id, limit, has a rate].
SELECT place.value ->> 0, place.value ->> 1, (
    SELECT json_group_array(slot) FROM windlass_jobs INDEXED BY windlass_jobs_slot
    WHERE queue = place.value ->> 0 AND concurrency_key = place.value ->> 1 AND slot IS NOT NULL
), (
    SELECT json_group_array(json_array(id, key_limit, key_rate IS NOT NULL)) FROM (
        SELECT id, key_limit, key_rate FROM windlass_jobs INDEXED BY windlass_jobs_line
        WHERE status = 'blocked' AND reason = 'in line for its key'
        AND queue = place.value ->> 0 AND concurrency_key = place.value ->> 1
        ORDER BY CASE WHEN key_strict THEN 0 ELSE urgency END, rank, id LIMIT :most
    )
)
FROM json_each(:lines) AS place
WHERE EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_line
    WHERE status = 'blocked' AND reason = 'in line for its key'
    AND queue = place.value ->> 0 AND concurrency_key = place.value ->> 1
)
