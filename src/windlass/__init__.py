"""Windlass: a job queue for Python. An accepted job is never lost."""
