-- Write a queue that is there and locked, and the rules that hold for it.
UPDATE windlass.queues SET
    declared = :declared, changed = :changed, paused = :paused, paused_until = :paused_until,
    max_attempts = :max_attempts, timeout = :timeout,
    keep_completed = :keep_completed, keep_cancelled = :keep_cancelled, keep_dead = :keep_dead
WHERE name = :name
