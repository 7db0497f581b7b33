-- The next page of keys with waiting jobs: those with a free slot become dirty. From key to key in the index. Returns
-- how many keys there were, the last of them, and how many became dirty.
WITH RECURSIVE page AS (
    (
        SELECT queue, concurrency_key AS key, 1 AS place FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'waits for its concurrency key' AND (queue, concurrency_key) > (:queue::text, :key::text)
        ORDER BY queue, concurrency_key LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.key, page.place + 1 FROM page CROSS JOIN LATERAL (
        SELECT job.queue, job.concurrency_key AS key FROM windlass.jobs AS job
        WHERE job.status || '' = 'blocked' AND job.reason = 'waits for its concurrency key'
            AND (job.queue, job.concurrency_key) > (page.queue, page.key)
        ORDER BY job.queue, job.concurrency_key LIMIT 1
    ) AS next
    WHERE page.place < :limit::integer
), free AS MATERIALIZED (
    SELECT page.queue, page.key FROM page CROSS JOIN LATERAL (
        SELECT job.key_limit FROM windlass.jobs AS job
        WHERE job.queue = page.queue AND job.concurrency_key = page.key AND job.status || '' = 'blocked'
            AND job.reason = 'waits for its concurrency key'
        ORDER BY (CASE WHEN job.key_strict THEN 0 ELSE job.sort_priority END), job.rank, job.id LIMIT 1
    ) AS first
    WHERE coalesce(first.key_limit, 1) > (
        SELECT count(*) FROM windlass.jobs AS holder
        WHERE holder.queue = page.queue AND holder.concurrency_key = page.key AND holder.slot IS NOT NULL
    )
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT queue, key FROM free
)
SELECT page.place, page.queue, page.key, (SELECT count(*) FROM free) FROM page ORDER BY page.place DESC LIMIT 1
