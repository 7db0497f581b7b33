"""What is done with jobs, queues and schedules: one module per verb, with its SQL."""
