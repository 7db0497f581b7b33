-- Park jobs of unknown types among the first of each queue and priority; jobs that are being claimed are skipped.
-- Their slots are freed, except in strict order.
WITH strange AS MATERIALIZED (
    SELECT head.id
    FROM windlass.watermarks AS place CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
        AND rank <= coalesce((
            SELECT rank FROM windlass.jobs
            WHERE queue = place.queue AND sort_priority = place.sort_priority AND rank >= place.rank AND status = 'pending'
            ORDER BY rank, id LIMIT 1 OFFSET :limit::integer
        ), 9223372036854775807)
        AND type <> ALL(:known::text[])
        ORDER BY rank, id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS head
), parked AS (
    UPDATE windlass.jobs
    SET status = 'blocked', reason = 'no worker for type', updated_at = :now, slot = CASE WHEN key_strict THEN slot END
    WHERE id = ANY(ARRAY(SELECT id FROM strange)) RETURNING type, queue, concurrency_key, slot
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM parked WHERE concurrency_key IS NOT NULL AND slot IS NULL
)
SELECT type, count(*) FROM parked GROUP BY type
