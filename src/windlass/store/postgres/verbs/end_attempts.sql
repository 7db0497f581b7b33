-- name: finish
-- Move ended jobs into history, each with its own outcome. Returns those that are not kept, and those that have
-- dependents.
WITH ending AS MATERIALIZED (
    SELECT * FROM unnest(
        :ids::uuid[], :statuses::text[], :reasons::text[], :started::bigint[], :results::text[], :errors::text[],
        :attempts::text[], :failures::integer[], :crashes::integer[], :rescues::integer[], :suspicions::integer[],
        :requeues::integer[], :snoozes::integer[]
    ) AS one (
        id, status, reason, started_at, result, error, attempts, failures, crashes, rescues, suspicions, requeues,
        snoozes
    )
), gone AS (
    DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) RETURNING *
), ended AS MATERIALIZED (
    SELECT job.*, ending.status AS now_status, ending.reason AS why, ending.started_at AS began, ending.result,
        CASE WHEN ending.status <> 'completed' THEN coalesce(ending.error, job.error) END AS now_error,
        ending.attempts AS all_attempts, ending.failures AS f, ending.crashes AS c, ending.rescues AS r,
        ending.suspicions AS s, ending.requeues AS h, ending.snoozes AS z, clock.now,
        CASE ending.status
            WHEN 'completed' THEN coalesce(queue.keep_completed, :keep_completed::bigint)
            WHEN 'cancelled' THEN coalesce(queue.keep_cancelled, :keep_cancelled::bigint)
            ELSE coalesce(queue.keep_dead, :keep_dead::bigint)
        END AS keep
    FROM gone AS job JOIN ending ON ending.id = job.id CROSS JOIN (SELECT :now AS now) AS clock
    LEFT JOIN windlass.queues AS queue ON queue.name = job.queue
), filed AS (
    INSERT INTO windlass.history (
        id, partition, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
        rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
        worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
        result, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    )
    SELECT id, windlass.partition_of(now_status, now, keep), queue, type, payload, now_status, why, sort_priority + aged_by, run_at, attempt,
        max_attempts, failures + f, crashes + c, rescues + r, suspicions + s, requeues + h, snoozes + z, created_at,
        now, claimed_at, began, now, now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents,
        timeout, expires_at, cancel_requested, result, now_error, all_attempts, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    FROM ended
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, now_status, windlass.drop_day(now_status, now, keep), count(*) FROM ended
    GROUP BY queue, now_status, windlass.drop_day(now_status, now, keep)
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM ended WHERE slot IS NOT NULL
)
SELECT id::text, keep = 0, has_dependents FROM ended WHERE keep = 0 OR has_dependents

-- name: requeue
-- Requeued or rescued jobs become pending at their old ranks. Returns their ranks, for the watermarks.
UPDATE windlass.jobs AS job
SET status = 'pending', reason = back.reason, updated_at = :now, claimed_at = NULL, started_at = NULL, worker = NULL,
    claim = NULL, error = coalesce(back.error, job.error), attempts = back.attempts,
    crashes = job.crashes + back.crashes, rescues = job.rescues + back.rescues,
    suspicions = job.suspicions + back.suspicions, requeues = job.requeues + back.requeues
FROM unnest(
    :ids::uuid[], :reasons::text[], :errors::text[], :attempts::text[], :crashes::integer[], :rescues::integer[],
    :suspicions::integer[], :requeues::integer[]
) AS back (id, reason, error, attempts, crashes, rescues, suspicions, requeues)
WHERE job.id = back.id AND job.id = ANY (:ids::uuid[])
RETURNING queue, sort_priority, rank

-- name: reschedule
-- Failed or snoozed jobs get another time, at their original priority. Their slots are freed, except in strict order.
WITH off AS (
    UPDATE windlass.jobs AS job
    SET sort_priority = job.sort_priority + job.aged_by, aged_by = 0, status = off.status, reason = off.reason, run_at = :now + off.delay, rank = :now + off.delay, updated_at = :now,
        claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL, error = coalesce(off.error, job.error),
        attempts = off.attempts, failures = job.failures + off.failures, snoozes = job.snoozes + off.snoozes,
        slot = CASE WHEN job.key_strict THEN job.slot END
    FROM unnest(
        :ids::uuid[], :statuses::text[], :reasons::text[], :delays::bigint[], :errors::text[], :attempts::text[],
        :failures::integer[], :snoozes::integer[]
    ) AS off (id, status, reason, delay, error, attempts, failures, snoozes)
    WHERE job.id = off.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.queue, job.concurrency_key, job.slot
)
INSERT INTO windlass.dirty_keys (queue, key)
SELECT DISTINCT queue, concurrency_key FROM off WHERE concurrency_key IS NOT NULL AND slot IS NULL
