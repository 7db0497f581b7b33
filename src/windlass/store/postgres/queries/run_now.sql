-- Jobs need not wait for their time; their budget and their expiry stay as they are. With a key and no slot they go to its
-- line. Found by their ids, not by walking through all that wait.
WITH ready AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
        run_at = :now, rank = :now, updated_at = :now, lane = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' IN ('scheduled', 'failed')
    RETURNING id, queue, urgency, rank, status, concurrency_key
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM ready WHERE status = 'blocked'
)
SELECT id::text, status, queue, urgency, rank FROM ready
