-- Failed or snoozed: back after a while.
UPDATE windlass.jobs AS job
SET status = off.status, reason = off.reason, run_at = :now + off.delay, rank = :now + off.delay, updated_at = :now,
    claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL, error = coalesce(off.error, job.error),
    attempts = off.attempts, failures = job.failures + off.failures, snoozes = job.snoozes + off.snoozes
FROM unnest(
    :ids::uuid[], :statuses::text[], :reasons::text[], :delays::bigint[], :errors::text[], :attempts::text[],
    :failures::integer[], :snoozes::integer[]
) AS off (id, status, reason, delay, error, attempts, failures, snoozes)
WHERE job.id = off.id AND job.id = ANY (:ids::uuid[])
