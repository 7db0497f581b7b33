-- name: add_queues
-- Add queues that do not exist. The statement looks them up first, because in a caller's transaction with an old snapshot
-- an INSERT that conflicts with a changed row is a serialization failure.
INSERT INTO windlass.queues (
    name, declared, changed, paused, paused_until, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead
)
SELECT new.name, :declared::text, :changed::text, :paused::boolean, :paused_until::bigint, :max_attempts::integer,
    :timeout::bigint, :keep_completed::bigint, :keep_cancelled::bigint, :keep_dead::bigint
FROM unnest(:names::text[]) WITH ORDINALITY AS new (name, nth)
WHERE NOT EXISTS (SELECT 1 FROM windlass.queues AS old WHERE old.name = new.name) ORDER BY nth
ON CONFLICT (name) DO NOTHING

-- name: set_queue
-- Write a queue that the caller has locked. If it had no concurrency limit, its quotas must first count the running jobs.
WITH uncounted AS (
    UPDATE windlass.quotas SET slots = NULL
    WHERE queue = :name AND :max_concurrency::integer IS NOT NULL
    AND (SELECT old.max_concurrency FROM windlass.queues AS old WHERE old.name = :name) IS NULL
)
UPDATE windlass.queues SET
    declared = :declared, changed = :changed, paused = :paused, paused_until = :paused_until,
    max_attempts = :max_attempts, timeout = :timeout,
    keep_completed = :keep_completed, keep_cancelled = :keep_cancelled, keep_dead = :keep_dead,
    closed = :closed, max_concurrency = :max_concurrency, rate_limit = :rate_limit, fair = :fair, ageing = :ageing,
    limited = :limited
WHERE name = :name
