"""Attributes of spans, by OpenTelemetry's messaging conventions; Windlass's own begin with `messaging.windlass`."""

import os
import socket
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from windlass.client.app import App
from windlass.core.jobs.job import Claimed, NewJob

Attributes = dict[str, Any]
SYSTEM = "windlass"
MAX_DESTINATIONS = 10
"""Queues that are named on a span of many jobs."""
W3C = TraceContextTextMapPropagator()
_HOST = socket.gethostname()


class JobAttributes:
    """The attributes of an app's spans."""

    def __init__(self, app: App) -> None:
        self._app = app

    def of_new(self, jobs: Sequence[NewJob], operation: str) -> Attributes:
        """Attributes of enqueued jobs."""
        if len(jobs) > 1:
            return self.of_batch(operation, "send", {job.queue for job in jobs}, len(jobs))
        job = jobs[0]
        return {
            **self._operation(operation, operation),
            **_of_job(job.queue, job.id, job.type, job.flow, None),
        }

    def of_batch(self, operation: str, kind: str, queues: Iterable[str], jobs: int) -> Attributes:
        """Attributes of a call for many jobs."""
        return {
            **self._operation(operation, kind),
            "messaging.destination.name": ",".join(sorted(queues)[:MAX_DESTINATIONS]),
            "messaging.batch.message_count": jobs,
        }

    def of_attempt(self, job: Claimed) -> Attributes:
        """Attributes of an attempt."""
        return {
            **self._operation("process", "process"),
            **_of_job(job.queue, job.id, job.type, job.flow, job.schedule),
            "messaging.windlass.attempt": job.attempt,
        }

    def _operation(self, name: str, kind: str) -> Attributes:
        return {
            "messaging.system": SYSTEM,
            "messaging.operation.name": name,
            "messaging.operation.type": kind,
            "messaging.client.id": f"{_HOST}-{os.getpid()}",
            **self._server,
        }

    @cached_property
    def _server(self) -> Attributes:
        """Host and port of the store; nothing for a file."""
        try:
            parts = urlsplit(self._app.store)
            found = {"server.address": parts.hostname, "server.port": parts.port}
        except ValueError:
            return {}  # several hosts
        return {name: value for name, value in found.items() if value is not None}


def _of_job(queue: str, id_: str, type_: str, flow: str | None, schedule: str | None) -> Attributes:
    known = {
        "messaging.destination.name": queue,
        "messaging.message.id": id_,
        "messaging.message.conversation_id": flow,
        "messaging.windlass.type": type_,
        "messaging.windlass.schedule": schedule,
    }
    return {name: value for name, value in known.items() if value is not None}
