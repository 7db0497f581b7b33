-- Of each key in [[queue, key], …] that anybody uses: the slots that are taken, and where the first in line stands.
-- Materialised, or each of the two would be looked up once more to be compared with NULL.
WITH used AS MATERIALIZED (
    SELECT place.value ->> 0 AS queue, place.value ->> 1 AS key, (
        SELECT nullif(json_group_array(slot), '[]') FROM windlass_jobs INDEXED BY windlass_jobs_slot
        WHERE queue = place.value ->> 0 AND concurrency_key = place.value ->> 1 AND slot IS NOT NULL
    ) AS taken, (
        SELECT json_array(CASE WHEN key_strict THEN 0 ELSE urgency END, rank, id)
        FROM windlass_jobs INDEXED BY windlass_jobs_line
        WHERE status = 'blocked' AND reason = 'in line for its key'
        AND queue = place.value ->> 0 AND concurrency_key = place.value ->> 1
        ORDER BY CASE WHEN key_strict THEN 0 ELSE urgency END, rank, id LIMIT 1
    ) AS head
    FROM json_each(:lines) AS place
)
SELECT queue, key, taken, head FROM used WHERE taken IS NOT NULL OR head IS NOT NULL
