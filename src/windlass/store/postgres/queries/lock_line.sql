-- One at a time decides who is next for the keys of a queue. Who is not the first leaves it to him. Nothing is promised
-- to anybody by this, so its end need not be waited for on the disk: the claim that follows is later in the log.
SELECT name, set_config('synchronous_commit', 'off', true) FROM windlass.queues
WHERE name = :queue::text FOR NO KEY UPDATE SKIP LOCKED
