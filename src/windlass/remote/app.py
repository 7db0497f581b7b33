"""RemoteApp: an app whose jobs are behind a REST server."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Never, TypeVar, Unpack

from windlass.client.app import CLIENT_DEADLINE, App
from windlass.client.handle import Handle
from windlass.client.runtime.store_handle import StoreHandle
from windlass.core.flow.queue import QueueOptions
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import SECOND, Duration, duration
from windlass.core.status import Status
from windlass.errors import (
    EnqueueFailed,
    EnqueueUnknown,
    InvalidOption,
    JobCancelled,
    StoreUnavailable,
    StoreUnusable,
)
from windlass.remote.connection import Connection
from windlass.remote.enqueue import enqueue
from windlass.remote.flows import RemoteFlows
from windlass.remote.problems import RemoteRefused
from windlass.remote.schedules import RemoteSchedules
from windlass.remote.verbs import RemoteAudit, RemoteJobs, RemoteQueues, RemoteStats, RemoteWorkers
from windlass.remote.webhooks import RemoteWebhooks
from windlass.remote.work.session import understood
from windlass.remote.work.store import RestStore
from windlass.remote.worker import Worker
from windlass.server.api.enqueue import MAX_BULK_BODY
from windlass.server.api.jobs import JobRecord
from windlass.server.operation import MissingScope
from windlass.server.problem import Problem
from windlass.store.contract import Store

T = TypeVar("T")
MIN_POLL, MAX_POLL = 0.05, 1.0
MAX_FAILURES = 10
"""Answers 500 in a row after which a wait gives up: the server fails at this job, and is not merely away."""
INTERNAL_ERROR = 500
NO_RESULT = "job {id} completed, and this token may not see its result: that needs the scope payloads"


class RemoteApp(App):
    """An app behind a REST server: `RemoteApp("https://jobs.example.com", token="wl_…")`.

    It enqueues jobs, of its own tasks or by name, and has `jobs`, `flows`, `queues`, `schedules`, `workers`, `stats`,
    `webhooks` and `audit` of App, with the same errors. Up to 1,000 jobs are enqueued at once, all or none. It cannot
    take part in a transaction, or enqueue chains and flows. Server and token default to WINDLASS_SERVER and
    WINDLASS_TOKEN.
    """

    def __init__(
        self, server: str | None = None, *, token: str | None = None, deadline: Duration | None = CLIENT_DEADLINE
    ) -> None:
        super().__init__("sqlite:///:remote:", deadline=deadline)
        self._store_handle.server_limit = MAX_BULK_BODY
        self._connection = Connection(server, token, self._deadline)
        _set_verbs(self, self._connection)

    @property
    def store(self) -> str:
        """The address of the server."""
        return self._connection.server

    def __repr__(self) -> str:
        return f"RemoteApp({self._connection.server!r}, {len(self.registry.types)} tasks)"

    def queue(self, name: str, **options: Unpack[QueueOptions]) -> Never:
        """Refused: the app of a worker declares queues. `queues.set` changes one."""
        raise _not_here("queue", "queues.set(...)")

    def schedule(self, *args: Any, **options: Any) -> Never:
        """Refused: the app of a worker declares schedules. `schedules.add` makes one."""
        raise _not_here("schedule", "schedules.add(...)")

    def worker(self, **options: Any) -> Worker:
        """A worker in this process, through the server: see `windlass.remote.Worker`."""
        return Worker(self, **options)

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next verb opens new ones."""
        await self._connection.close()

    async def _ready(self) -> Store:
        if self._store_handle.opened is not None:
            return self._store_handle.connect()  # of a worker in this process
        raise InvalidOption("server", f"this needs the store itself, and {self.store} is a server")

    def _works_without_loop(self) -> bool:
        return False

    def _begins_without_loop(self) -> bool:
        return False

    def _handle(self, id_: str, existing: bool, returns: Any) -> Handle[Any]:
        return RemoteHandle(self, id_, existing, returns)

    async def _enqueue(self, jobs: Sequence[NewJob], connection: object = None) -> list[Enqueued]:
        if connection is not None:
            raise InvalidOption("connection", "a server cannot take part in a transaction of yours")
        try:
            return await enqueue(self._connection, jobs)
        except StoreUnavailable as error:
            if error.maybe_done:
                raise EnqueueUnknown([job.id for job in jobs], str(error)) from error
            raise EnqueueFailed(f"nothing was stored: {error}") from error


class RemoteHandle(Handle[T], eq=False):
    """A job that was enqueued through a server."""

    async def aresult(self, timeout: Duration | None = None) -> T:
        """Wait until the job has ended, also through outages, and return its result. Needs the scope `payloads`.

        Raises RemoteRefused if the server answers 500 to the first read, to ten reads in a row, or to the last one.
        """
        seconds = None if timeout is None else duration(timeout, "timeout") / SECOND
        job = await self._read()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                job = await self._ended(job)
        if not job.finished:
            job = await self._read_again(job)
        if not job.finished:
            raise TimeoutError(f"job {job.id} is still {job.status} after {seconds:g} s")
        if job.status is Status.CANCELLED:
            raise JobCancelled(job.id, job.reason or "no reason kept")
        if job.status is Status.COMPLETED and "result" in job.hidden:
            raise RemoteRefused(Problem(status=403, code=MissingScope.code, title=NO_RESULT.format(id=job.id)))
        return self._result_of(job)

    async def _ended(self, job: JobRecord) -> JobRecord:
        pause, failures = MIN_POLL, 0
        while not job.finished:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_POLL)
            try:
                job, failures = await self._read_again(job), 0
            except RemoteRefused as error:
                failures += 1
                if error.problem.status != INTERNAL_ERROR or failures == MAX_FAILURES:
                    raise
        return job

    async def _read_again(self, job: JobRecord) -> JobRecord:
        """The job now, or as it was read before while the server or its store is away."""
        try:
            return await self._read()
        except (StoreUnavailable, RemoteRefused) as error:
            cause = understood(error) if isinstance(error, RemoteRefused) else error
            if isinstance(error, RemoteRefused) and error.problem.status == INTERNAL_ERROR:
                raise
            if not isinstance(cause, StoreUnavailable) or isinstance(cause, StoreUnusable) or cause.lasting:
                raise
            return job

    async def _read(self) -> JobRecord:
        home: Any = self._home
        found: JobRecord = await home.jobs._record(self.id)
        return found


def _not_here(what: str, instead: str) -> InvalidOption:
    return InvalidOption(what, f"is declared by the app of a worker, not through a server; to change one: {instead}")


def redirect(app: App, server: str, token: str | None = None) -> None:
    """Let an app use a server, as far as the token allows, instead of the store that its code names."""
    connection = Connection(server, token or None, app._deadline)
    app._store_handle = StoreHandle(
        lambda: connection.server, lambda address: RestStore(connection), server_limit=MAX_BULK_BODY
    )
    app._handle = partial(RemoteHandle, app)  # type: ignore[method-assign]
    _set_verbs(app, connection)


def _set_verbs(app: App, connection: Connection) -> None:
    app.jobs = RemoteJobs(app, connection)
    app.flows = RemoteFlows(app, connection)
    app.queues = RemoteQueues(app, connection)
    app.schedules = RemoteSchedules(app, connection)
    app.workers = RemoteWorkers(app, connection)
    app.stats = RemoteStats(app, connection)
    app.webhooks = RemoteWebhooks(app, connection)
    app.audit = RemoteAudit(app, connection)
