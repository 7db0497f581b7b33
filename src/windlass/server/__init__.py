"""The REST server: jobs, queues, schedules and statistics over HTTP, on the verbs of the client alone."""

from windlass.server.asgi import asgi

__all__ = ["asgi"]
