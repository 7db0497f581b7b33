-- Parked jobs of known types become pending at their old rank, or wait for their key; up to :limit of all types
-- together. Type by type, by jobs_parked only. Locked rows are skipped.
WITH freed AS MATERIALIZED (
    SELECT parked.id
    FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type
        ORDER BY id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS parked LIMIT :limit::integer
), back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'waits for its concurrency key' END,
        updated_at = :now, tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY(ARRAY(SELECT id FROM freed)) RETURNING queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT queue, sort_priority, rank, status FROM back
