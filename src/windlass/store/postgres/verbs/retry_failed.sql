-- Failed jobs become pending, or wait for their key, with a fresh budget and no expiry. By ids, not by a scan of all
-- failed jobs.
WITH back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'waits for its concurrency key' END,
        run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0, expires_at = NULL,
        tenant_queue = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' = 'failed'
    RETURNING id, queue, sort_priority, rank, status, concurrency_key
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, sort_priority, rank FROM back
