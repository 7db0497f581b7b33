-- name: claim
-- Assign up to :limit pending jobs of one queue to a runner. The attempt is counted already here, so that it also counts if
-- the job kills its runner.
UPDATE windlass_jobs
SET status = 'running', attempt = attempt + 1, worker = :runner, claim = :claim,
    claimed_at = :now, started_at = NULL, updated_at = :now, reason = NULL
WHERE id IN (
    SELECT id FROM windlass_jobs INDEXED BY windlass_jobs_pending
    WHERE queue = :queue AND status = 'pending' AND type IN (SELECT value FROM json_each(:types))
    ORDER BY sort_priority, rank, id LIMIT :limit
)

-- name: claimed
-- The running jobs of one claim, best first, as one row of JSON: the driver releases the GIL after each row, and among busy
-- threads it takes longer to get the GIL back than to read the row.
SELECT '[' || group_concat(job) || ']' FROM (
    SELECT json_array(
        id, queue, type, payload, attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes,
        -sort_priority - aged_by, run_at, created_at, claimed_at, idempotency_key, concurrency_key, tenant, parent, flow, timeout,
        expires_at, tags, meta, result_params, parent_results, schedule, tick
    ) AS job
    FROM windlass_jobs INDEXED BY windlass_jobs_held
    WHERE worker = :runner AND claim = :claim AND status = 'running'
    ORDER BY sort_priority, rank, id
)

-- name: has_work
-- Whether a job in these queues may be claimed, or any job is due.
SELECT EXISTS (
    SELECT 1 FROM json_each(:queues) AS wanted
    WHERE EXISTS (
        SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_pending
        WHERE queue = wanted.value AND status = 'pending'
        AND (:types IS NULL OR type IN (SELECT value FROM json_each(:types)))
    )
) OR EXISTS (
    SELECT 1 FROM windlass_jobs INDEXED BY windlass_jobs_due
    WHERE status IN ('scheduled', 'failed') AND run_at <= :now
)
