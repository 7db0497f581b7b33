-- One queue.
SELECT name, declared, changed, paused, paused_until FROM windlass_queues WHERE name = :name
