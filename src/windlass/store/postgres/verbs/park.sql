-- name: unknown_types
-- One type at the head of a queue that no worker knows.
SELECT head.type FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
    SELECT type FROM windlass.jobs
    WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
    AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
    ORDER BY rank, id LIMIT :limit
) AS head
WHERE head.type <> ALL(:known::text[]) LIMIT 1

-- name: park
-- Park jobs of unknown types among the first of each queue and priority; jobs that are being claimed are skipped. Parked jobs
-- give up their key slots, unless their key is strict.
WITH unknown AS MATERIALIZED (
    SELECT head.id
    FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
        AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
        AND rank <= coalesce((
            SELECT rank FROM windlass.jobs
            WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
            AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
            ORDER BY rank, id LIMIT 1 OFFSET :limit::integer
        ), 9223372036854775807)
        AND type <> ALL(:known::text[])
        ORDER BY rank, id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS head
), parked AS (
    UPDATE windlass.jobs
    SET status = 'blocked', reason = 'no worker for type', updated_at = :now, key_slot = CASE WHEN key_strict THEN key_slot END
    WHERE id = ANY(ARRAY(SELECT id FROM unknown)) RETURNING type, queue, concurrency_key, key_slot
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM parked WHERE concurrency_key IS NOT NULL AND key_slot IS NULL
)
SELECT type, count(*) FROM parked GROUP BY type

-- name: is_any_parked
SELECT EXISTS (
    SELECT 1 FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type LIMIT 1
    ) AS parked
)

-- name: unpark
-- Parked jobs of known types become pending at their old rank, or wait for their key; up to :limit jobs of all types. They
-- are read type by type, so that the index jobs_parked is used. Locked rows are skipped.
WITH freed AS MATERIALIZED (
    SELECT parked.id
    FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type
        ORDER BY id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS parked LIMIT :limit::integer
), back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND key_slot IS NULL THEN 'waits for its concurrency key' END,
        updated_at = :now, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY(ARRAY(SELECT id FROM freed)) RETURNING queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT queue, sort_priority, rank, status FROM back

-- name: next_parked_type
-- The next type with parked jobs: one seek.
SELECT type FROM windlass.jobs
WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type > :after ORDER BY type LIMIT 1
