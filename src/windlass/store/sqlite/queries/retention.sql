-- How long this queue keeps finished jobs.
SELECT keep_completed, keep_cancelled, keep_dead FROM windlass_queues WHERE name = :queue
