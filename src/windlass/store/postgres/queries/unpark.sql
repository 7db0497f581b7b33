-- Their types are known now: pending again at their old rank or, with a key and no slot, in its line. What another beat frees at this moment is left to it.
-- Type by type, so that every beat of every worker is a few looks into a small index, and into no other.
WITH freed AS MATERIALIZED (
    SELECT parked.id
    FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type
        ORDER BY id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS parked
), back AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN concurrency_key IS NOT NULL AND slot IS NULL THEN 'in line for its key' END,
        updated_at = :now, lane = (
            SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
        )
    WHERE id = ANY(ARRAY(SELECT id FROM freed)) RETURNING queue, urgency, rank, status, concurrency_key
), marked AS (
    INSERT INTO windlass.marks (queue, key)
    SELECT DISTINCT queue, concurrency_key FROM back WHERE status = 'blocked'
)
SELECT queue, urgency, rank, status FROM back
