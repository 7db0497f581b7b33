-- name: admit
-- Make due jobs pending, or blocked if they need a key slot; the earliest first. Returns how many, and how long until the
-- next is due. Locked rows are skipped. The rank of a pending job is never in the past (core/jobs/admission.py), nor below
-- its watermark; but a throttled job keeps its rank, and the watermark is lowered to it. If nothing is due, nothing is
-- written. The search for the next job begins behind the last admitted one, because this statement still sees the
-- admitted jobs as due. Only enqueues add watermarks: an insert here would wait for callers' transactions.
WITH start AS MATERIALIZED (
    SELECT due FROM windlass.due_watermark WHERE one = 1
), due AS MATERIALIZED (
    SELECT id, queue, sort_priority, rank, reason, run_at, concurrency_key,
        concurrency_key IS NOT NULL AND key_slot IS NULL AS waits_for_key
    FROM windlass.jobs
    WHERE stage IN ('scheduled', 'failed') AND run_at >= (SELECT due FROM start) AND run_at <= :now
    ORDER BY run_at, id LIMIT :limit::integer FOR UPDATE SKIP LOCKED
), admitted AS (
    UPDATE windlass.jobs AS job
    SET status = CASE WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN 'blocked' ELSE 'pending' END,
        reason = CASE WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN 'waits for its concurrency key' END,
        updated_at = :now,
        rank = CASE
            WHEN job.concurrency_key IS NOT NULL AND job.key_slot IS NULL THEN job.run_at
            WHEN job.reason = 'rate limit of its key' THEN job.rank
            ELSE greatest(job.run_at, :now, (
                SELECT watermark.rank FROM windlass.watermarks AS watermark
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
), taken AS MATERIALIZED (
    SELECT count(*) AS jobs FROM due
), last AS MATERIALIZED (
    (SELECT run_at, id FROM due WHERE (SELECT jobs FROM taken) = :limit::integer ORDER BY run_at DESC, id DESC LIMIT 1)
    UNION ALL
    SELECT CASE WHEN :limit::integer = 0 THEN due - 1 ELSE :now END, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid FROM start
    LIMIT 1
)
SELECT (SELECT jobs FROM taken), (
    SELECT greatest(0, job.run_at - :now) FROM windlass.jobs AS job
    WHERE job.stage IN ('scheduled', 'failed')
        AND (job.run_at, job.id) > ((SELECT run_at FROM last), (SELECT id FROM last))
    ORDER BY job.run_at, job.id LIMIT 1
)

-- name: ageing
SELECT name, ageing FROM windlass.queues WHERE ageing IS NOT NULL

-- name: age
-- Move jobs that have waited too long to the next higher priority with pending jobs; they keep their ranks. The oldest jobs
-- come first, so only the first rows behind each watermark are read.
WITH level AS MATERIALIZED (
    SELECT watermark.sort_priority, watermark.rank FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
        SELECT 1 FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.sort_priority = watermark.sort_priority AND job.stage = 'pending'
        AND job.status = 'pending' AND job.rank >= watermark.rank
        LIMIT 1
    ) AS any_job WHERE watermark.queue = :queue::text
), step AS MATERIALIZED (
    SELECT sort_priority, rank, lag(sort_priority) OVER (ORDER BY sort_priority) AS above FROM level
), aged AS MATERIALIZED (
    SELECT head.id, step.above FROM step CROSS JOIN LATERAL (
        SELECT job.id, job.updated_at FROM windlass.jobs AS job
        WHERE job.queue = :queue::text AND job.sort_priority = step.sort_priority AND job.stage = 'pending'
        AND job.status = 'pending'
        AND job.rank >= step.rank AND job.rank <= :now - :ageing::bigint
        ORDER BY job.rank, job.id LIMIT :head::integer
    ) AS head
    WHERE step.above IS NOT NULL AND head.updated_at <= :now - :ageing::bigint
    ORDER BY step.sort_priority LIMIT :limit::integer
), locked AS MATERIALIZED (
    SELECT job.id, aged.above FROM aged CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs WHERE id = aged.id AND status || '' = 'pending' FOR UPDATE SKIP LOCKED
    ) AS job
)
UPDATE windlass.jobs AS job
SET aged_by = job.aged_by + job.sort_priority - locked.above, sort_priority = locked.above, updated_at = :now
FROM locked WHERE job.id = locked.id RETURNING job.queue, job.sort_priority, job.rank

-- name: is_any_expired
-- Whether a waiting job has expired.
SELECT EXISTS (
    SELECT FROM windlass.due_watermark AS part CROSS JOIN LATERAL (
        SELECT FROM windlass.jobs
        WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running' /*yugabyte AND bucket = part.bucket */ LIMIT 1
    ) AS expired
)

-- name: lock_expired
-- Lock expired waiting jobs, the longest expired first; locked ones are skipped.
SELECT id::text FROM windlass.jobs AS job
WHERE expires_at IS NOT NULL AND expires_at <= :now AND status <> 'running'
ORDER BY job.expires_at, job.id LIMIT :limit::integer FOR UPDATE SKIP LOCKED

-- name: oldest
-- How long the oldest pending job of each queue has waited, by the first job of each priority.
SELECT watermark.queue, greatest(0, :now - min(head.rank))
FROM windlass.watermarks AS watermark CROSS JOIN LATERAL (
    SELECT rank FROM windlass.jobs
    WHERE queue = watermark.queue AND sort_priority = watermark.sort_priority /*yugabyte AND bucket = watermark.bucket */
    AND rank >= watermark.rank AND stage = 'pending' AND status = 'pending'
    ORDER BY rank, id LIMIT 1
) AS head
GROUP BY watermark.queue
