-- Completed: into history, all of the batch at once. Answers with those that were not running as the batch says.
-- What its queue does not keep leaves only a tombstone; keys are freed, at once or after their windows, and slots are.
-- Those who wait for one of them go on, with its result: a row without an id says that some may run now.
WITH done AS MATERIALIZED (
    SELECT * FROM unnest(
        string_to_array(:ids, ',')::uuid[], string_to_array(:attempts, ',')::integer[],
        string_to_array(:started, ',', '')::bigint[], :results::text[]
    ) AS one (id, attempt, started_after, result)
), gone AS (
    DELETE FROM windlass.jobs AS job USING done
    -- By their ids: a plan that was made while nothing was running would else walk through all that is.
    WHERE job.id = done.id AND job.attempt = done.attempt AND job.status || '' = 'running'
    RETURNING job.*, done.started_after, done.result
), ended AS MATERIALIZED (
    SELECT gone.*, clock.now, coalesce(queue.keep_completed, :keep::bigint) AS keep
    FROM gone CROSS JOIN (SELECT :now AS now) AS clock LEFT JOIN windlass.queues AS queue ON queue.name = gone.queue
), filed AS (
    INSERT INTO windlass.history (
        id, shelf, queue, type, payload, status, urgency, run_at, attempt, max_attempts, failures, crashes, rescues,
        suspicions, hand_backs, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at, worker,
        idempotency_key, concurrency_key, tenant, parent, flow, parents, timeout, expires_at, cancel_requested, result,
        attempts, tags, meta, idempotency_window, key_limit, key_strict, key_rate, rate_cost,
        schedule, tick, takes, inputs, waits, lag
    )
    SELECT id, windlass.shelf('completed', now, keep), queue, type, payload, 'completed', urgency + aged_by, run_at, attempt,
        max_attempts, failures, crashes, rescues, suspicions, hand_backs, snoozes, created_at, now, claimed_at,
        coalesce(claimed_at + started_after, started_at), now, now + keep, worker, idempotency_key, concurrency_key,
        tenant, parent, flow, parents, timeout, expires_at, cancel_requested, result, attempts, tags, meta,
        idempotency_window, key_limit, key_strict, key_rate, rate_cost, schedule, tick, takes, inputs, waits, lag
    FROM ended WHERE keep > 0
), tallied AS (
    INSERT INTO windlass.tallies (queue, status, day, jobs)
    SELECT queue, 'completed', windlass.drop_day('completed', now, keep), count(*) FROM ended WHERE keep > 0
    GROUP BY queue, windlass.drop_day('completed', now, keep)
), buried AS (
    INSERT INTO windlass.tombstones (id, shelf, attempt, outcome, until)
    SELECT id, (now + :tombstone::bigint) / 86400000000 % 3, attempt, 'completed', now + :tombstone::bigint
    FROM ended WHERE keep = 0
), unnoted AS (
    DELETE FROM windlass.notes WHERE job = ANY(ARRAY(SELECT id FROM ended WHERE keep = 0))
), keyed AS MATERIALIZED (
    SELECT queue, encode(sha256(convert_to(idempotency_key, 'UTF8')), 'hex') AS hash, id,
        now + idempotency_window AS until
    FROM ended WHERE idempotency_key IS NOT NULL
), freed AS (
    DELETE FROM windlass.keys AS held USING keyed
    WHERE held.queue = keyed.queue AND held.hash = keyed.hash AND held.job = keyed.id AND keyed.until IS NULL
), windowed AS (
    UPDATE windlass.keys AS held SET until = keyed.until FROM keyed
    WHERE held.queue = keyed.queue AND held.hash = keyed.hash AND held.job = keyed.id AND keyed.until IS NOT NULL
), marked AS (
    INSERT INTO windlass.marks (queue, key) SELECT DISTINCT queue, concurrency_key FROM ended WHERE slot IS NOT NULL
), told AS (
    DELETE FROM windlass.awaited WHERE job = ANY(ARRAY(SELECT id FROM ended)) RETURNING channel, job
)
SELECT done.id::text FROM done WHERE NOT EXISTS (SELECT 1 FROM gone WHERE gone.id = done.id)
UNION ALL
SELECT NULL FROM (
    SELECT windlass.pass_on(array_agg(id), array_agg(result), min(now), max(rank) + 1) AS ready
    FROM ended WHERE heirs HAVING count(*) > 0
) AS passed WHERE ready > 0
-- Whoever waits for one of them: no row, but it must be said.
UNION ALL SELECT NULL FROM told WHERE pg_notify(channel, job::text)::text IS NULL
