-- One at a time shares out what a queue lets run at once; who is not the first comes again. Nothing is promised to
-- anybody by this, so its end need not be waited for on the disk: the claim that follows is later in the log.
SELECT coalesce(max_concurrency, 0), set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED
