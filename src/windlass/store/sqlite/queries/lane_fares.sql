-- The next jobs of tenants at one priority of a fair queue, of each so many, [[lane, jobs], …], in the order of their
-- ranks; and what a start of each costs. One seek for each job; as one row, like the answer of a claim.
WITH RECURSIVE walk (lane, more, rank, id, rate_cost, concurrency_key, key_rate) AS (
    SELECT value ->> 0, value ->> 1, -9223372036854775808, NULL, NULL, NULL, NULL FROM json_each(:shares)
    UNION ALL
    SELECT walk.lane, walk.more - 1, job.rank, job.id, job.rate_cost, job.concurrency_key, job.key_rate
    FROM walk CROSS JOIN windlass_jobs AS job ON job.id = (
        SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_lane
        WHERE queue = :queue AND urgency = :urgency AND lane = walk.lane AND status = 'pending'
        AND (rank, id) > (walk.rank, coalesce(walk.id, ''))
        AND type IN (SELECT value FROM json_each(:types)) AND (expires_at IS NULL OR expires_at > :now)
        ORDER BY rank, id LIMIT 1
    )
    WHERE walk.more > 0
)
SELECT '[' || group_concat(json_array(
    lane, json_array(:urgency, rank, id, coalesce(rate_cost, 1), coalesce(concurrency_key, ''), key_rate)
)) || ']' FROM walk WHERE id IS NOT NULL
