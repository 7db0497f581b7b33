-- name: add_queues
INSERT INTO windlass_queues (name, declared, changed, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead)
SELECT value, :declared, :changed, :max_attempts, :timeout, :keep_completed, :keep_cancelled, :keep_dead
FROM json_each(:names) WHERE true
ON CONFLICT (name) DO NOTHING

-- name: set_queue
-- A queue that becomes fair starts its backfill of tenant queues.
UPDATE windlass_queues SET
    declared = :declared, changed = :changed, paused = :paused, paused_until = :paused_until,
    max_attempts = :max_attempts, timeout = :timeout,
    keep_completed = :keep_completed, keep_cancelled = :keep_cancelled, keep_dead = :keep_dead,
    closed = :closed, max_concurrency = :max_concurrency, rate_limit = :rate_limit, fair = :fair, ageing = :ageing,
    limited = :limited, backfilled_to = CASE WHEN :fair THEN CASE WHEN fair THEN backfilled_to ELSE '' END END
WHERE name = :name
