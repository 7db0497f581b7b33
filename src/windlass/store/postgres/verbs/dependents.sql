-- name: cancel
-- Cancel waiting jobs, which the caller has locked. Returns what the caller needs to free their keys, and to drop those
-- that are not kept.
WITH cancelled AS MATERIALIZED (
    SELECT * FROM unnest(:ids::uuid[], :reasons::text[]) AS one (id, reason)
), gone AS (
    DELETE FROM windlass.jobs WHERE id = ANY(:ids::uuid[]) RETURNING *
), ended AS MATERIALIZED (
    SELECT job.*, cancelled.reason AS why, clock.now, coalesce(queue.keep_cancelled, :keep::bigint) AS keep
    FROM gone AS job JOIN cancelled ON cancelled.id = job.id CROSS JOIN (SELECT :now AS now) AS clock
    LEFT JOIN windlass.queues AS queue ON queue.name = job.queue
), filed AS (
    INSERT INTO windlass.history (
        id, partition, queue, type, payload, status, reason, sort_priority, run_at, attempt, max_attempts, failures, crashes,
        rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
        worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested,
        error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    )
    SELECT id, windlass.partition_of('cancelled', now, keep), queue, type, payload, 'cancelled', why,
        sort_priority + aged_by, run_at, attempt,
        max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes, created_at, now, claimed_at,
        started_at, now, now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
        expires_at, cancel_requested, error, attempts, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params, parent_results, pending_parents,
        delay_after_parents
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

-- name: notify_result_waits
-- Notify the clients that wait for these jobs, which end with this transaction.
WITH notified AS (
    DELETE FROM windlass.result_waits WHERE job = ANY(:ids::uuid[]) RETURNING channel, job
)
SELECT :notify(channel, job::text)::text FROM notified

-- name: release_dependents
-- Release the dependents of completed jobs that the caller has locked; returns how many may run now.
SELECT windlass.release_dependents(array_agg(id), array_agg(result), :now, 0) FROM windlass.history WHERE id = ANY (:ids::uuid[])

-- name: release_ended_dependents
-- Release the dependents that wait only for the end of these finished jobs; returns how many may run now.
SELECT windlass.release_dependents(:ids::uuid[], array_fill(NULL::text, ARRAY[cardinality(:ids::uuid[])]), :now, 0, true)

-- name: descendants
-- Live dependents of these jobs, direct or not, each with one of its parents, and any dependents that wait only for the end
-- of one of them. Each step goes from the dependencies to the jobs.
WITH RECURSIVE down (child, because, when_ended) AS (
    SELECT dependency.child, dependency.parent, dependency.when_ended
    FROM windlass.dependencies AS dependency LEFT JOIN LATERAL (
        SELECT true AS live FROM windlass.jobs WHERE id = dependency.child OFFSET 0
    ) AS dependent ON true
    WHERE dependency.parent = ANY (:ids::uuid[]) AND (dependent.live OR dependency.when_ended)
    UNION
    SELECT dependency.child, dependency.parent, dependency.when_ended FROM down CROSS JOIN LATERAL (
        SELECT parent, child, when_ended FROM windlass.dependencies WHERE parent = down.child OFFSET 0
    ) AS dependency LEFT JOIN LATERAL (
        SELECT true AS live FROM windlass.jobs WHERE id = dependency.child OFFSET 0
    ) AS dependent ON true
    WHERE NOT down.when_ended AND (dependent.live OR dependency.when_ended)
)
SELECT DISTINCT ON (child, when_ended) child::text, because::text, when_ended FROM down ORDER BY child, when_ended, because

-- name: set_cancel_reasons
-- Set the reasons of cancelled jobs, which the caller has locked.
UPDATE windlass.history AS job SET reason = one.reason
FROM unnest(:ids::uuid[], :reasons::text[]) AS one (id, reason) WHERE job.id = one.id AND job.id = ANY (:ids::uuid[])

-- name: cancelled_because_of
-- Jobs that were cancelled because one of these ended, directly or not, nearest first: queue, key, and {parent: status} of
-- the parents that ended without completing. Jobs cancelled for another reason are left out, with their dependents.
WITH RECURSIVE down (child, queue, key, parents, depth) AS (
    SELECT dependency.child, gone.queue, gone.idempotency_key, gone.parents, 0
    FROM windlass.dependencies AS dependency CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = dependency.child AND status = 'cancelled'
        AND reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled') OFFSET 0
    ) AS gone
    WHERE dependency.parent = ANY (:ids::uuid[])
    UNION
    SELECT dependency.child, gone.queue, gone.idempotency_key, gone.parents, down.depth + 1
    FROM down CROSS JOIN LATERAL (
        SELECT parent, child FROM windlass.dependencies WHERE parent = down.child OFFSET 0
    ) AS dependency CROSS JOIN LATERAL (
        SELECT queue, idempotency_key, parents FROM windlass.history
        WHERE id = dependency.child AND status = 'cancelled'
        AND reason IN ('its parent ' || dependency.parent || ' is dead', 'its parent ' || dependency.parent || ' is cancelled') OFFSET 0
    ) AS gone
)
SELECT child::text, queue, key, (
    SELECT coalesce(json_object_agg(dependency.parent, coalesce(finished.status, 'dead')), '{}')
    FROM json_array_elements_text(down.parents::json) AS named (parent) CROSS JOIN LATERAL (
        SELECT parent FROM windlass.dependencies WHERE parent = named.parent::uuid AND child = down.child OFFSET 0
    ) AS dependency LEFT JOIN LATERAL (
        SELECT status FROM windlass.history WHERE id = dependency.parent OFFSET 0
    ) AS finished ON true
    WHERE NOT EXISTS (SELECT FROM windlass.jobs AS live WHERE live.id = dependency.parent OFFSET 0)
)::text AS failed
FROM down ORDER BY depth, child

-- name: lock_pending_parents
-- Lock the live parents for which these cancelled jobs would wait again, in order, so that none ends before the commit.
SELECT FROM windlass.jobs AS job WHERE id = ANY (ARRAY(
    SELECT named.parent::uuid FROM windlass.history AS child
    CROSS JOIN LATERAL json_array_elements_text(child.parents::json) AS named (parent)
    WHERE child.id = ANY (:ids::uuid[]) AND child.pending_parents > 0
)) ORDER BY job.id FOR NO KEY UPDATE

-- name: share_lock_finished
-- Lock finished parents, in order, against revival and dropping.
SELECT id::text, status, queue FROM windlass.history AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.partition FOR KEY SHARE

-- name: revive_waiting
-- Cancelled jobs, which the caller has locked, wait for their parents again, with a fresh budget and no expiry.
WITH gone AS (
    DELETE FROM windlass.history WHERE id = ANY (:ids::uuid[]) RETURNING *
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, status, CASE WHEN partition < 32 THEN drop_at / 86400000000 ELSE -1 END, -count(*)
    FROM gone GROUP BY 1, 2, 3
)
INSERT INTO windlass.jobs (
    id, queue, type, payload, status, reason, sort_priority, rank, run_at, attempt, max_attempts, rescues, suspicions,
    requeues, snoozes, created_at, updated_at, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, pending_parents, delay_after_parents, has_dependents, tenant_queue
)
SELECT id, queue, type, payload, 'blocked', 'waits for its parent', sort_priority, run_at, run_at, attempt, max_attempts, rescues,
    suspicions, requeues, snoozes, created_at, :now, idempotency_key, concurrency_key, tenant, parent, flow, parents,
    timeout, error, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
    schedule, tick, result_params, parent_results, pending_parents, delay_after_parents,
    EXISTS (SELECT FROM windlass.dependencies AS dependency WHERE dependency.parent = gone.id OFFSET 0), (
        SELECT CASE WHEN fair THEN coalesce(gone.tenant, '') END FROM windlass.queues WHERE name = gone.queue
    )
FROM gone
