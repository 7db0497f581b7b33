-- The next page of keys that somebody is in line for: those that have a free slot are marked. From one key to the next in
-- the index, however many are in line for each. How many keys there were, the last of them, and how many were marked.
WITH RECURSIVE page AS (
    (
        SELECT queue, concurrency_key AS key, 1 AS place FROM windlass.jobs
        WHERE status || '' = 'blocked' AND reason = 'in line for its key' AND (queue, concurrency_key) > (:queue::text, :key::text)
        ORDER BY queue, concurrency_key LIMIT 1
    )
    UNION ALL
    SELECT next.queue, next.key, page.place + 1 FROM page CROSS JOIN LATERAL (
        SELECT job.queue, job.concurrency_key AS key FROM windlass.jobs AS job
        WHERE job.status || '' = 'blocked' AND job.reason = 'in line for its key'
            AND (job.queue, job.concurrency_key) > (page.queue, page.key)
        ORDER BY job.queue, job.concurrency_key LIMIT 1
    ) AS next
    WHERE page.place < :limit::integer
), free AS MATERIALIZED (
    SELECT page.queue, page.key FROM page CROSS JOIN LATERAL (
        SELECT job.key_limit FROM windlass.jobs AS job
        WHERE job.queue = page.queue AND job.concurrency_key = page.key AND job.status || '' = 'blocked'
            AND job.reason = 'in line for its key'
        ORDER BY (CASE WHEN job.key_strict THEN 0 ELSE job.urgency END), job.rank, job.id LIMIT 1
    ) AS first
    WHERE coalesce(first.key_limit, 1) > (
        SELECT count(*) FROM windlass.jobs AS holder
        WHERE holder.queue = page.queue AND holder.concurrency_key = page.key AND holder.slot IS NOT NULL
    )
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT queue, key FROM free
)
SELECT page.place, page.queue, page.key, (SELECT count(*) FROM free) FROM page ORDER BY page.place DESC LIMIT 1
