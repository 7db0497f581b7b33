-- Their types are known now: pending again, at their old rank. What another beat frees at this moment is left to it.
-- Type by type, so that every beat of every worker is a few looks into a small index, and into no other.
WITH freed AS MATERIALIZED (
    SELECT parked.id
    FROM unnest(:types::text[]) AS known (type) CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'no worker for type' AND type = known.type
        ORDER BY id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
    ) AS parked
)
UPDATE windlass.jobs AS job SET status = 'pending', reason = NULL, updated_at = :now, lane = (
    SELECT CASE WHEN fair THEN coalesce(job.tenant, '') END FROM windlass.queues WHERE name = job.queue
)
WHERE id = ANY(ARRAY(SELECT id FROM freed)) RETURNING queue, urgency, rank
