-- The budget of attempts and the timeout that each queue gives to jobs that bring none.
SELECT name, max_attempts, timeout FROM windlass_queues
