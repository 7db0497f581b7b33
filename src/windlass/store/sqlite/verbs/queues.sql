-- name: queue
SELECT name, declared, changed, paused, paused_until, closed FROM windlass_queues WHERE name = :name

-- name: queue_names
SELECT name FROM windlass_queues ORDER BY name

-- name: set_queue
-- A queue that becomes fair starts its backfill of tenant queues.
INSERT INTO windlass_queues (
    name, declared, changed, paused, paused_until, closed, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead,
    max_concurrency, rate_limit, fair, ageing, limited
) VALUES (
    :name, :declared, :changed, :paused, :paused_until, :closed, :max_attempts, :timeout, :keep_completed, :keep_cancelled,
    :keep_dead, :max_concurrency, :rate_limit, :fair, :ageing, :ruled
)
ON CONFLICT (name) DO UPDATE SET
    declared = excluded.declared, changed = excluded.changed, paused = excluded.paused,
    paused_until = excluded.paused_until, max_attempts = excluded.max_attempts,
    timeout = excluded.timeout,
    keep_completed = excluded.keep_completed, keep_cancelled = excluded.keep_cancelled, keep_dead = excluded.keep_dead,
    closed = excluded.closed, max_concurrency = excluded.max_concurrency, rate_limit = excluded.rate_limit,
    fair = excluded.fair,
    backfilled_to = CASE WHEN excluded.fair THEN CASE WHEN windlass_queues.fair THEN backfilled_to ELSE '' END END, ageing = excluded.ageing, limited = excluded.limited
