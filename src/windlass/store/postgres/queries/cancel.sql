-- Waiting jobs are called off, all of the batch at once; the caller has locked them. What the caller has to do next:
-- free their keys, and drop those that their queues do not keep. One that was first in line gives way too.
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
        id, shelf, queue, type, payload, status, reason, urgency, run_at, attempt, max_attempts, failures, crashes,
        rescues, suspicions, hand_backs, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
        worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
        error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, takes, inputs, waits, lag
    )
    SELECT id, windlass.shelf('cancelled', now, keep), queue, type, payload, 'cancelled', why, urgency + aged_by, run_at, attempt,
        max_attempts, failures, crashes, rescues, suspicions, hand_backs, snoozes, created_at, now, claimed_at,
        started_at, now, now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
        expires_at, cancel_requested, error, attempts, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, takes, inputs, waits, lag
    FROM ended
), tallied AS (
    INSERT INTO windlass.tallies (queue, status, day, jobs)
    SELECT queue, 'cancelled', windlass.drop_day('cancelled', now, keep), count(*) FROM ended
    GROUP BY queue, windlass.drop_day('cancelled', now, keep)
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT DISTINCT queue, concurrency_key FROM ended
    WHERE concurrency_key IS NOT NULL
)
SELECT id::text, queue, idempotency_key, idempotency_window, keep = 0 FROM ended
