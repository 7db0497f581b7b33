-- Failed or snoozed jobs, and those requeued with a pause, get another time, at their original priority. Their slots are freed, except in strict order.
WITH off AS (
    UPDATE windlass.jobs AS job
    SET sort_priority = job.sort_priority + job.aged_by, aged_by = 0, status = off.status, reason = off.reason, run_at = :now + off.delay, rank = :now + off.delay, updated_at = :now,
        claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL, error = coalesce(off.error, job.error),
        attempts = off.attempts, failures = job.failures + off.failures, snoozes = job.snoozes + off.snoozes,
        requeues = job.requeues + off.requeues,
        slot = CASE WHEN job.key_strict THEN job.slot END
    FROM unnest(
        :ids::uuid[], :statuses::text[], :reasons::text[], :delays::bigint[], :errors::text[], :attempts::text[],
        :failures::integer[], :snoozes::integer[], :requeues::integer[]
    ) AS off (id, status, reason, delay, error, attempts, failures, snoozes, requeues)
    WHERE job.id = off.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.queue, job.concurrency_key, job.slot
)
INSERT INTO windlass.dirty_keys (queue, key)
SELECT DISTINCT queue, concurrency_key FROM off WHERE concurrency_key IS NOT NULL AND slot IS NULL
