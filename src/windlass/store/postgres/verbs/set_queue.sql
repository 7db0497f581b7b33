-- Write a queue, locked by the caller.
UPDATE windlass.queues SET
    declared = :declared, changed = :changed, paused = :paused, paused_until = :paused_until,
    max_attempts = :max_attempts, timeout = :timeout,
    keep_completed = :keep_completed, keep_cancelled = :keep_cancelled, keep_dead = :keep_dead,
    closed = :closed, max_concurrency = :max_concurrency, rate_limit = :rate_limit, fair = :fair, ageing = :ageing,
    limited = :ruled
WHERE name = :name
