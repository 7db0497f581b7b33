-- Lock the queue: one process at a time assigns quotas. Its commit need not be flushed: the claim that follows is
-- later in the WAL.
SELECT coalesce(max_concurrency, 0), set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED
