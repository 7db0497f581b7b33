-- Failed jobs need not wait for their time; their budget starts anew, and they expire no more. With a key and no slot they
-- go to its line. Found by their ids, not by walking through all that failed.
WITH back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
        run_at = :now, rank = :now, updated_at = :now, failures = 0, crashes = 0, expires_at = NULL,
        lane = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY (:ids::uuid[]) AND status || '' = 'failed'
    RETURNING id, queue, urgency, rank, status, concurrency_key
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT id::text, status, queue, urgency, rank FROM back
