-- name: complete
-- Copy the completed jobs of [[id, attempt, started_after, result], …], all of one queue, into history. CROSS JOIN makes SQLite go
-- from the batch to the jobs. A job that is not running as the batch says is left out, which the row count shows.
INSERT INTO windlass_history (
    id, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
    worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
    result, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule,
    tick, result_params, parent_results, pending_parents, delay_after_parents
)
SELECT job.id, queue, job.type, payload, 'completed', NULL, sort_priority + aged_by, run_at, attempt, max_attempts,
    failures, crashes, rescues, suspicions, requeues, snoozes, created_at, :now, claimed_at,
    coalesce(claimed_at + (done.value ->> 2), started_at), :now, :now + :keep,
    worker, idempotency_key, concurrency_key, tenant, job.parent, flow, parents, timeout, expires_at,
    cancel_requested, done.value ->> 3, NULL, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
FROM json_each(:batch) AS done CROSS JOIN windlass_jobs AS job
ON job.id = done.value ->> 0 AND job.attempt = done.value ->> 1 AND job.status = 'running'

-- name: drop_live_batch
DELETE FROM windlass_jobs WHERE id IN (SELECT value ->> 0 FROM json_each(:batch))

-- name: running
SELECT id, queue, type, attempt, max_attempts, failures, crashes, worker, claimed_at, started_at, cancel_requested,
    reason, idempotency_key, attempts, idempotency_window, expires_at, concurrency_key, key_strict
FROM windlass_jobs WHERE id = :id AND attempt = :attempt AND status = 'running'

-- name: recorded
SELECT attempt, status, attempts FROM windlass_jobs WHERE id = :id
UNION ALL
SELECT attempt, status, attempts FROM windlass_history WHERE id = :id

-- name: has_tombstone
SELECT 1 FROM windlass_tombstones WHERE id = :id AND attempt = :attempt AND outcome = :outcome

-- name: finish
INSERT INTO windlass_history (
    id, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
    worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
    result, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule,
    tick, result_params, parent_results, pending_parents, delay_after_parents
)
SELECT id, queue, type, payload, :status, :reason, sort_priority + aged_by, run_at, attempt, max_attempts,
    failures + :failures, crashes + :crashes, rescues + :rescues, suspicions + :suspicions,
    requeues + :requeues, snoozes + :snoozes,
    created_at, :now, claimed_at, :started_at, :now, :now + :keep, worker, idempotency_key, concurrency_key, tenant,
    parent, flow, parents, timeout, expires_at, cancel_requested, :result,
    CASE WHEN :status <> 'completed' THEN coalesce(:error, error) END, :attempts, tags, meta, idempotency_window,
    key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params, parent_results, pending_parents,
    delay_after_parents
FROM windlass_jobs WHERE id = :id

-- name: drop_live
DELETE FROM windlass_jobs WHERE id = :id

-- name: requeue
-- A requeued or rescued job becomes pending at its old rank.
UPDATE windlass_jobs
SET status = 'pending', reason = :reason, updated_at = :now, claimed_at = NULL, started_at = NULL,
    worker = NULL, claim = NULL, error = coalesce(:error, error), attempts = :attempts,
    crashes = crashes + :crashes, rescues = rescues + :rescues, suspicions = suspicions + :suspicions,
    requeues = requeues + :requeues
WHERE id = :id

-- name: reschedule
-- A job that failed, was snoozed, or is requeued with a pause is due at :run_at, at its original priority. It gives up its key slot,
-- unless its key is strict.
UPDATE windlass_jobs
SET sort_priority = sort_priority + aged_by, aged_by = 0, status = :status, reason = :reason, run_at = :run_at,
    rank = :run_at, updated_at = :now,
    claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL,
    error = coalesce(:error, error), attempts = :attempts,
    failures = failures + :failures, snoozes = snoozes + :snoozes, requeues = requeues + :requeues,
    key_slot = CASE WHEN key_strict THEN key_slot END
WHERE id = :id

-- name: retention
SELECT keep_completed, keep_cancelled, keep_dead FROM windlass_queues WHERE name = :queue

-- name: set_started
UPDATE windlass_jobs SET started_at = claimed_at + :after
WHERE id = :id AND attempt = :attempt AND status = 'running' AND started_at IS NULL

-- name: notes
SELECT progress, logs FROM windlass_notes WHERE job = :job

-- name: set_notes
INSERT INTO windlass_notes (job, progress, logs) VALUES (:job, :progress, :logs)
ON CONFLICT (job) DO UPDATE SET progress = excluded.progress, logs = excluded.logs
