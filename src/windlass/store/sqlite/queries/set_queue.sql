-- Write a queue, and the rules that hold for it.
INSERT INTO windlass_queues (
    name, declared, changed, paused, paused_until, closed, max_attempts, timeout, keep_completed, keep_cancelled, keep_dead,
    max_concurrency, rate_limit, fair, ageing, ruled
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
    laning = CASE WHEN excluded.fair THEN CASE WHEN windlass_queues.fair THEN laning ELSE '' END END, ageing = excluded.ageing, ruled = excluded.ruled
