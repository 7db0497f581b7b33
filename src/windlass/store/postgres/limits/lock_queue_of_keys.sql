-- Lock the queue: one process at a time admits jobs that wait for keys. Its commit need not be flushed: the claim
-- that follows is later in the WAL.
SELECT name, set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED
