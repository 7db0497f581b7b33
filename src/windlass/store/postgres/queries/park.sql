-- Set jobs of unknown types aside, among the next ones of each queue and urgency. What somebody claims at this moment
-- is left to them: they know its type.
WITH strange AS (
    SELECT job.id
    FROM windlass.floors AS place CROSS JOIN LATERAL (
        SELECT id, type FROM windlass.jobs
        WHERE queue = place.queue AND urgency = place.urgency AND rank >= place.rank AND status = 'pending'
        ORDER BY rank, id LIMIT :limit
    ) AS head
    JOIN windlass.jobs AS job ON job.id = head.id
    WHERE head.type <> ALL(:known::text[]) AND job.status = 'pending'
    FOR UPDATE OF job SKIP LOCKED
), parked AS (
    UPDATE windlass.jobs AS job SET status = 'blocked', reason = 'no worker for type', updated_at = :now
    FROM strange WHERE job.id = strange.id RETURNING job.type
)
SELECT type, count(*) FROM parked GROUP BY type
