"""The API for programs: the app, its tasks, and verbs on jobs, queues and schedules."""
