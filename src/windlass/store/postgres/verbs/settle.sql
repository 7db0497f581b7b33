-- name: drop_duplicates
-- Delete live jobs that are also in history: history wins.
WITH gone AS (
    DELETE FROM windlass.jobs AS twin WHERE twin.id = ANY (:ids::uuid[])
        AND EXISTS (SELECT FROM windlass.history AS old WHERE old.id = twin.id OFFSET 0)
    RETURNING *
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM gone WHERE key_slot IS NOT NULL
)
SELECT id::text, queue, idempotency_key, idempotency_window, has_dependents FROM gone

-- name: lock_finished
-- Lock finished jobs, in order, against revival and dropping.
SELECT id::text, status, queue, sort_priority, idempotency_key, pending_parents FROM windlass.history AS job
WHERE id = ANY (:ids::uuid[]) ORDER BY job.id, job.partition FOR UPDATE

-- name: complete
-- Move completed jobs into history. Returns the ids of those that were not running as stated, and NULL if dependents may run
-- now. A job that is not kept leaves a tombstone; idempotency keys are freed, at once or after their windows, and so are
-- key slots. Dependents are released, with the results. :queues has the queues of the jobs, once each.
WITH done AS MATERIALIZED (
    SELECT * FROM unnest(
        string_to_array(:ids, ',')::uuid[], string_to_array(:attempts, ',')::integer[],
        string_to_array(:started, ',', '')::bigint[], :results::text[]
    ) AS one (id, attempt, started_after, result)
    -- A caller's open transaction may have locked one of the jobs, or its key: the others must not wait as long.
    /*plain*/WHERE (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL/*end*/
), retention AS MATERIALIZED (
    SELECT name AS queue, keep_completed AS keep FROM windlass.queues WHERE name = ANY(:queues::text[])
), gone AS (
    DELETE FROM windlass.jobs AS job USING done
    -- The status is compared as an expression, so that jobs are found by their ids: a plan that was made while nothing was
    -- running might otherwise scan all running jobs.
    WHERE job.id = done.id AND job.attempt = done.attempt AND job.status || '' = 'running'
    RETURNING job.id, job.queue, job.type, job.payload, job.sort_priority + job.aged_by AS sort_priority, job.rank,
        job.run_at, job.attempt, job.max_attempts, job.failures, job.crashes, job.rescues, job.suspicions, job.requeues,
        job.snoozes, job.created_at, job.claimed_at, coalesce(job.claimed_at + done.started_after, job.started_at) AS started_at,
        job.worker, job.idempotency_key, job.idempotency_window, job.concurrency_key, job.key_slot, job.key_limit,
        job.key_strict, job.key_rate, job.rate_cost, job.tenant, job.parent, job.flow, job.parents, job.result_params,
        job.parent_results, job.pending_parents, job.delay_after_parents, job.has_dependents, job.timeout, job.expires_at,
        job.cancel_requested, job.attempts, job.tags, job.meta, job.schedule, job.tick, done.result
), filed AS (
    INSERT INTO windlass.history (
        id, partition, queue, type, payload, status, sort_priority, run_at, attempt, max_attempts, failures, crashes, rescues,
        suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at, worker,
        idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested, result,
        attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    )
    SELECT id, windlass.partition_of('completed', :now, keep), queue, type, payload, 'completed', sort_priority, run_at,
        attempt, max_attempts, failures, crashes, rescues, suspicions, requeues, snoozes, created_at, :now, claimed_at,
        started_at, :now, :now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout,
        expires_at, cancel_requested, result, attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate,
        rate_cost, schedule, tick, result_params, parent_results, pending_parents, delay_after_parents
    FROM (
        -- Not a join, which would hash the jobs, whose rows are wide.
        SELECT gone.*, coalesce((SELECT keep FROM retention WHERE retention.queue = gone.queue), :keep::bigint) AS keep
        FROM gone OFFSET 0
    ) AS ended WHERE keep > 0
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT ended.queue, 'completed', windlass.drop_day('completed', :now, coalesce(keep, :keep::bigint)), ended.jobs
    FROM (SELECT queue, count(*) AS jobs FROM gone GROUP BY queue) AS ended
    LEFT JOIN retention ON retention.queue = ended.queue WHERE coalesce(keep, :keep::bigint) > 0
), unkept AS MATERIALIZED (
    SELECT id, attempt FROM gone JOIN retention ON retention.queue = gone.queue
    WHERE keep = 0 AND EXISTS (SELECT 1 FROM retention WHERE keep = 0)
), tombstone AS (
    INSERT INTO windlass.tombstones (id, partition, attempt, outcome, until)
    SELECT id, (:now + :tombstone::bigint) / 86400000000 % 3, attempt, 'completed', :now + :tombstone::bigint FROM unkept
), unnoted AS (
    DELETE FROM windlass.notes WHERE job = ANY(ARRAY(SELECT id FROM unkept))
), special AS MATERIALIZED (
    -- Usually there is no such job, and the following statements have nothing to read.
    SELECT id, queue, idempotency_key, idempotency_window, concurrency_key, key_slot, rank, result, has_dependents
    FROM gone WHERE has_dependents OR key_slot IS NOT NULL OR idempotency_key IS NOT NULL
), keyed AS MATERIALIZED (
    SELECT queue, encode(sha256(convert_to(idempotency_key, 'UTF8')), 'hex') AS hash, id,
        :now + idempotency_window AS until
    FROM special WHERE idempotency_key IS NOT NULL
), freed AS (
    DELETE FROM windlass.idempotency_keys AS held USING keyed
    WHERE held.queue = keyed.queue AND held.hash = keyed.hash AND held.job = keyed.id AND keyed.until IS NULL
), windowed AS (
    UPDATE windlass.idempotency_keys AS held SET until = keyed.until FROM keyed
    WHERE held.queue = keyed.queue AND held.hash = keyed.hash AND held.job = keyed.id AND keyed.until IS NOT NULL
), /*yugabyte dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM special WHERE key_slot IS NOT NULL
), */ notified AS (
    DELETE FROM windlass.result_waits WHERE job = ANY(ARRAY(SELECT id FROM gone)) RETURNING channel, job
)
SELECT done.id::text FROM done
WHERE (SELECT count(*) FROM gone) < (SELECT count(*) FROM done) AND NOT EXISTS (SELECT 1 FROM gone WHERE gone.id = done.id)
UNION ALL
SELECT NULL FROM (
    SELECT windlass.release_dependents(array_agg(id), array_agg(result), :now, max(rank) + 1) AS ready
    FROM special WHERE has_dependents HAVING count(*) > 0
) AS passed WHERE ready > 0
/*plain*/UNION ALL
SELECT NULL FROM (
    SELECT windlass.pass_key_slots(array_agg(queue), array_agg(concurrency_key), array_agg(key_slot), :now, max(rank) + 1) AS ready
    FROM special WHERE key_slot IS NOT NULL HAVING count(*) > 0
) AS passed WHERE ready > 0/*end*/
-- Notifies the clients that wait for results; the condition is never true, so that it adds no row.
UNION ALL SELECT NULL FROM notified WHERE :notify(channel, job::text)::text IS NULL

-- name: running
-- Lock running attempts, in the order of ids. By ids, because an old plan might scan all running jobs. With a lock_timeout
-- for the transaction, because a caller's open transaction may have locked one of them, or its key.
SELECT job.id::text, queue, type, job.attempt, max_attempts, failures, crashes, worker, claimed_at, started_at,
    cancel_requested, reason, idempotency_key, attempts, idempotency_window, expires_at
FROM windlass.jobs AS job
JOIN unnest(:ids::uuid[], :attempts::integer[]) AS wanted (id, attempt) ON job.id = wanted.id AND job.attempt = wanted.attempt
WHERE job.status || '' = 'running'
    /*plain*/AND (SELECT set_config('lock_timeout', '1s', true)) IS NOT NULL/*end*/
ORDER BY job.id FOR UPDATE OF job

-- name: recorded
SELECT id::text, attempt, status, attempts FROM windlass.jobs WHERE id = ANY(:ids::uuid[])
UNION ALL
SELECT id::text, attempt, status, attempts FROM windlass.history WHERE id = ANY(:ids::uuid[])

-- name: tombstone_outcomes
-- The last attempts of dropped jobs, and their outcomes.
SELECT id::text, attempt, outcome FROM windlass.tombstones WHERE id = ANY(:ids::uuid[])

-- name: note_starts
-- Record that running attempts, which the caller has locked, have started.
UPDATE windlass.jobs AS job SET started_at = job.claimed_at + new.after
FROM unnest(:ids::uuid[], :afters::bigint[]) AS new (id, after)
WHERE job.id = new.id AND job.started_at IS NULL

-- name: notes
SELECT job::text, progress, logs FROM windlass.notes WHERE job = ANY(:jobs::uuid[])

-- name: set_notes
INSERT INTO windlass.notes (job, progress, logs)
SELECT * FROM unnest(:jobs::uuid[], :progress::text[], :logs::text[])
ON CONFLICT (job) DO UPDATE SET progress = excluded.progress, logs = excluded.logs

-- name: finish
-- Move jobs whose attempts ended them into history, each with its own outcome. Returns those that are not kept, and those
-- that have dependents.
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
    SELECT job.*, ending.status AS new_status, ending.reason AS new_reason, ending.started_at AS new_started_at, ending.result,
        CASE WHEN ending.status <> 'completed' THEN coalesce(ending.error, job.error) END AS new_error,
        ending.attempts AS all_attempts, ending.failures AS more_failures, ending.crashes AS more_crashes,
        ending.rescues AS more_rescues, ending.suspicions AS more_suspicions, ending.requeues AS more_requeues,
        ending.snoozes AS more_snoozes, clock.now,
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
    SELECT id, windlass.partition_of(new_status, now, keep), queue, type, payload, new_status, new_reason,
        sort_priority + aged_by, run_at, attempt,
        max_attempts, failures + more_failures, crashes + more_crashes, rescues + more_rescues,
        suspicions + more_suspicions, requeues + more_requeues, snoozes + more_snoozes, created_at,
        now, claimed_at, new_started_at, now, now + keep, worker, idempotency_key, concurrency_key, tenant, parent, flow, parents,
        timeout, expires_at, cancel_requested, result, new_error, all_attempts, tags, meta, idempotency_window,
        key_limit, key_strict, key_rate, rate_cost, schedule, tick, result_params, parent_results, pending_parents,
        delay_after_parents
    FROM ended
), counted AS (
    INSERT INTO windlass.history_counts (queue, status, day, jobs)
    SELECT queue, new_status, windlass.drop_day(new_status, now, keep), count(*) FROM ended
    GROUP BY queue, new_status, windlass.drop_day(new_status, now, keep)
), dirtied AS (
    INSERT INTO windlass.dirty_keys (queue, key) SELECT DISTINCT queue, concurrency_key FROM ended WHERE key_slot IS NOT NULL
)
SELECT id::text, keep = 0, has_dependents FROM ended WHERE keep = 0 OR has_dependents

-- name: requeue
-- Requeued or rescued jobs become pending at their old ranks, which are returned for the watermarks.
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
-- Jobs that failed, were snoozed, or are requeued with a pause get another time, and their original priority. They give up
-- their key slots, unless their key is strict.
WITH off AS (
    UPDATE windlass.jobs AS job
    SET sort_priority = job.sort_priority + job.aged_by, aged_by = 0, status = off.status, reason = off.reason,
        run_at = :now + off.delay, rank = :now + off.delay, updated_at = :now,
        claimed_at = NULL, started_at = NULL, worker = NULL, claim = NULL, error = coalesce(off.error, job.error),
        attempts = off.attempts, failures = job.failures + off.failures, snoozes = job.snoozes + off.snoozes,
        requeues = job.requeues + off.requeues,
        key_slot = CASE WHEN job.key_strict THEN job.key_slot END
    FROM unnest(
        :ids::uuid[], :statuses::text[], :reasons::text[], :delays::bigint[], :errors::text[], :attempts::text[],
        :failures::integer[], :snoozes::integer[], :requeues::integer[]
    ) AS off (id, status, reason, delay, error, attempts, failures, snoozes, requeues)
    WHERE job.id = off.id AND job.id = ANY (:ids::uuid[])
    RETURNING job.queue, job.concurrency_key, job.key_slot
)
INSERT INTO windlass.dirty_keys (queue, key)
SELECT DISTINCT queue, concurrency_key FROM off WHERE concurrency_key IS NOT NULL AND key_slot IS NULL
