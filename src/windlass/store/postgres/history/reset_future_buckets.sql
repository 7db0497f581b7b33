-- Buckets of the future: the clock was set back. They keep their tokens, and are refilled from now on; jobs that wait
-- for their tokens wait for as much less. Locked rows are skipped.
WITH ahead AS MATERIALIZED (
    SELECT queue, key, at, at - :now AS by FROM windlass.buckets WHERE at > :now + :little::bigint
    ORDER BY queue, key FOR NO KEY UPDATE SKIP LOCKED
), waiting AS MATERIALIZED (
    SELECT job.id, ahead.by FROM ahead CROSS JOIN LATERAL (
        SELECT id FROM windlass.jobs
        WHERE slot IS NOT NULL AND queue = ahead.queue AND concurrency_key = ahead.key
        AND status || '' = 'scheduled' AND reason = 'rate limit of its key' AND run_at >= ahead.at
        FOR UPDATE SKIP LOCKED
    ) AS job
), earlier AS (
    UPDATE windlass.jobs AS job SET run_at = job.run_at - waiting.by FROM waiting WHERE job.id = waiting.id
)
UPDATE windlass.buckets AS bucket SET at = bucket.at - ahead.by, full_at = bucket.full_at - ahead.by
FROM ahead WHERE bucket.queue = ahead.queue AND bucket.key = ahead.key
