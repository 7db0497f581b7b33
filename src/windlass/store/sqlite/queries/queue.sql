-- One queue.
SELECT name, declared, changed, paused, paused_until, closed FROM windlass_queues WHERE name = :name
