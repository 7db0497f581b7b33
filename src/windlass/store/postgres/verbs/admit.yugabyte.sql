-- replaces: admit
-- The same for jobs in buckets: first find the earliest jobs of all buckets, then lock them by their ids.
WITH start AS MATERIALIZED (
    SELECT bucket, due FROM windlass.due_watermark
), heads AS MATERIALIZED (
    SELECT job.id, job.run_at FROM start CROSS JOIN LATERAL (
        SELECT id, run_at FROM windlass.jobs
        WHERE bucket = start.bucket AND stage IN ('scheduled', 'failed') AND run_at >= start.due AND run_at <= :now
        ORDER BY run_at, id LIMIT :limit::integer
    ) AS job ORDER BY job.run_at, job.id LIMIT :limit::integer
), due AS MATERIALIZED (
    SELECT id, queue, sort_priority, rank, reason, run_at, concurrency_key,
        concurrency_key IS NOT NULL AND key_slot IS NULL AS waits_for_key
    FROM windlass.jobs
    WHERE id = ANY (ARRAY(SELECT id FROM heads)) AND stage || '' IN ('scheduled', 'failed') AND run_at + 0 <= :now
    FOR UPDATE SKIP LOCKED
), admitted AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN 'waits for its concurrency key' END,
        updated_at = :now,
        rank = CASE
            WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN job.run_at
            WHEN job.reason = 'rate limit of its key' THEN job.rank
            ELSE greatest(job.run_at, :now, (
                SELECT watermark.rank FROM windlass.highest_watermarks AS watermark
                WHERE watermark.queue = job.queue AND watermark.sort_priority = job.sort_priority
            ))
        END, tenant_queue = (
            SELECT CASE WHEN queue.fair THEN coalesce(job.tenant, '') END FROM windlass.queues AS queue
            WHERE queue.name = job.queue
        )
    WHERE job.id = ANY (ARRAY(SELECT id FROM due))
), lowered AS (
    UPDATE windlass.watermarks AS watermark SET rank = least(watermark.rank, back.rank), returns = watermark.returns + 1
    FROM (
        SELECT queue, sort_priority, min(rank) AS rank FROM due WHERE reason = 'rate limit of its key' AND NOT waits_for_key
        GROUP BY queue, sort_priority ORDER BY queue, sort_priority
    ) AS back
    WHERE watermark.queue = back.queue AND watermark.sort_priority = back.sort_priority
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM due WHERE waits_for_key
), last AS MATERIALIZED (
    (
        SELECT run_at, id FROM heads WHERE (SELECT count(*) FROM heads) = :limit::integer AND :limit::integer > 0
        ORDER BY run_at DESC, id DESC LIMIT 1
    )
    UNION ALL
    SELECT CASE WHEN :limit::integer = 0 THEN min(due) - 1 ELSE :now END, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid FROM start
    LIMIT 1
)
SELECT (SELECT count(*) FROM due), (
    SELECT greatest(0, job.run_at - :now) FROM start CROSS JOIN LATERAL (
        SELECT run_at FROM windlass.jobs
        WHERE bucket = start.bucket AND stage IN ('scheduled', 'failed')
            AND (run_at, id) > ((SELECT run_at FROM last), (SELECT id FROM last))
        ORDER BY run_at, id LIMIT 1
    ) AS job ORDER BY job.run_at LIMIT 1
)

-- replaces: age
-- Move jobs that have waited too long to the next higher priority with pending jobs in any bucket.
WITH level AS MATERIALIZED (
    SELECT DISTINCT watermark.sort_priority FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.bucket = watermark.bucket AND job.queue = :queue::text AND job.sort_priority = watermark.sort_priority
        AND job.stage = 'pending' AND job.status = 'pending' AND job.rank >= watermark.rank
        LIMIT 1
    ) AS any_job WHERE watermark.queue = :queue::text
), step AS MATERIALIZED (
    SELECT sort_priority, lag(sort_priority) OVER (ORDER BY sort_priority) AS above FROM level
), aged AS MATERIALIZED (
    SELECT head.id, step.above FROM step JOIN windlass.watermarks AS watermark
        ON watermark.queue = :queue::text AND watermark.sort_priority = step.sort_priority
    CROSS JOIN LATERAL (
        SELECT job.id, job.rank, job.updated_at FROM windlass.jobs AS job
        WHERE job.bucket = watermark.bucket AND job.queue = :queue::text AND job.sort_priority = step.sort_priority
        AND job.stage = 'pending' AND job.status = 'pending' AND job.rank >= watermark.rank AND job.rank <= :now - :ageing::bigint
        ORDER BY job.rank, job.id LIMIT :head::integer
    ) AS head
    WHERE step.above IS NOT NULL AND head.updated_at <= :now - :ageing::bigint
    ORDER BY step.sort_priority, head.rank, head.id LIMIT :limit::integer
), locked AS MATERIALIZED (
    SELECT job.id, aged.above FROM aged CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = aged.id AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    ) AS job
)
UPDATE windlass.jobs AS job
SET aged_by = job.aged_by + job.sort_priority - locked.above, sort_priority = locked.above, updated_at = :now
FROM locked WHERE job.id = locked.id RETURNING job.queue, job.sort_priority, job.rank

-- replaces: lock_expired
-- Lock expired waiting jobs, the longest expired of all buckets first; locked ones are skipped.
SELECT job.id::text FROM windlass.jobs AS job WHERE job.id = ANY (ARRAY(
    SELECT head.id FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT id, expires_at FROM windlass.jobs
        WHERE bucket = part.bucket AND expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
        ORDER BY expires_at, id LIMIT :limit::integer
    ) AS head ORDER BY head.expires_at, head.id LIMIT :limit::integer
)) AND job.status || '' <> 'running' AND job.expires_at + 0 <= :now FOR UPDATE SKIP LOCKED
