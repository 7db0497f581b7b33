-- Gates from a time that has not come: the clock was set back by more than a little. They keep what they hold, and are
-- filled from now on; else they would bring nothing until that time. Who waits for their tokens waits for a moment of that
-- time too: by so much earlier. What somebody has in hand is left to the next look.
WITH ahead AS MATERIALIZED (
    SELECT queue, key, at, at - :now AS by FROM windlass.gates WHERE at > :now + :little::bigint
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
UPDATE windlass.gates AS gate SET at = gate.at - ahead.by, full_at = gate.full_at - ahead.by
FROM ahead WHERE gate.queue = ahead.queue AND gate.key = ahead.key
