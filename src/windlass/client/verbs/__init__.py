"""Verbs on jobs, queues, schedules and statistics."""
