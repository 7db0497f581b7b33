-- The next jobs of a queue, best first, and what a start of each costs; as one row, like the answer of a claim.
SELECT '[' || group_concat(job) || ']' FROM (
    SELECT json_array(urgency, rank, id, coalesce(rate_cost, 1), coalesce(concurrency_key, ''), key_rate) AS job
    FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    AND (expires_at IS NULL OR expires_at > :now)
    ORDER BY urgency, rank, id LIMIT :limit
)
