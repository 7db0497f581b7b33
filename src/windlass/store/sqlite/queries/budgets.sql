-- The budget of attempts that each queue gives to jobs that bring none.
SELECT name, max_attempts FROM windlass_queues
