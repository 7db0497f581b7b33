-- Cancel waiting jobs, locked by the caller. Returns what the caller needs to release their keys and to drop those
-- that are not kept.
WITH called AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :reasons::text[]) AS one (id, reason)
), gone AS (
    DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) RETURNING *
), ended AS MATERIALIZED (
    SELECT job.*, called.reason AS why, clock.now, coalesce(queue.keep_cancelled, :keep::bigint) AS keep
    FROM gone AS job JOIN called ON called.id = job.id CROSS JOIN (SELECT :now AS now) AS clock
    LEFT JOIN windlass.queues AS queue ON queue.name = job.queue
), filed AS (
    INSERT INTO windlass.history (
        id, partition, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
        rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
        worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
        error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    )
    SELECT id, windlass.partition_of('cancelled', now, keep), queue, type, payload, 'cancelled', why, sort_priority + aged_by, run_at, attempt,
        max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes, created_at, now, claimed_at,
        started_at, now, now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
        expires_at, cancel_requested, error, attempts, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    FROM ended
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, 'cancelled', windlass.drop_day('cancelled', now, keep), count(*) FROM ended
    GROUP BY queue, windlass.drop_day('cancelled', now, keep)
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM ended
    WHERE concurrency_key IS NOT NULL
)
SELECT id::text, queue, idempotency_key, idempotency_window, keep = 0 FROM ended
