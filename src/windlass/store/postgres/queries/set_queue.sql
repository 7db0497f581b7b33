-- Write a queue that is there and locked, and the rules that hold for it.
UPDATE windlass.queues SET
    declared = :declared, changed = :changed, paused = :paused, paused_until = :paused_until,
    max_attempts = :max_attempts, timeout = :timeout,
    keep_completed = :keep_completed, keep_cancelled = :keep_cancelled, keep_dead = :keep_dead,
    closed = :closed, max_concurrency = :max_concurrency, rate_limit = :rate_limit, fair = :fair, ageing = :ageing,
    ruled = :ruled
WHERE name = :name
