"""RemoteApp: an app whose jobs are behind a REST server."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Never, TypeVar, Unpack

import msgspec

from windlass.client.app import CLIENT_DEADLINE, App
from windlass.client.handle import Handle
from windlass.core.flow.queue import QueueOptions
from windlass.core.graphs.ids import FLOW_TYPE
from windlass.core.groups.ids import is_group_id
from windlass.core.jobs.job import NO_TIMEOUT, Enqueued, NewJob
from windlass.core.moments import SECOND, Duration, Micros, duration, to_datetime
from windlass.core.names import with_field
from windlass.core.status import Status
from windlass.errors import EnqueueFailed, EnqueueUnknown, InvalidInput, InvalidOption, JobCancelled, StoreUnavailable
from windlass.remote.connection import Connection
from windlass.remote.flows import RemoteFlows
from windlass.remote.problems import RemoteRefused
from windlass.remote.schedules import RemoteSchedules
from windlass.remote.verbs import RemoteJobs, RemoteQueues, RemoteStats, RemoteWorkers
from windlass.server.enqueue import MAX_BULK, BulkReceipt
from windlass.server.jobs import JobRecord
from windlass.server.operation import MissingScope
from windlass.server.problem import Problem
from windlass.store.contract import Store

T = TypeVar("T")
MIN_POLL, MAX_POLL = 0.05, 1.0
NO_RESULT = "job {id} completed, and this token may not see its result: that needs the scope payloads"


class RemoteApp(App):
    """An app behind a REST server: `RemoteApp("https://jobs.example.com", token="wl_…")`.

    It enqueues jobs, of its own tasks or by name, and has `jobs`, `flows`, `queues`, `schedules`, `workers` and
    `stats` of App, with the same errors. Up to 1,000 jobs are enqueued at once, all or none. It cannot take part in a
    transaction, run a worker, or enqueue chains and flows. Server and token default to WINDLASS_SERVER and
    WINDLASS_TOKEN.
    """

    def __init__(
        self, server: str | None = None, *, token: str | None = None, deadline: Duration | None = CLIENT_DEADLINE
    ) -> None:
        super().__init__("sqlite:///:remote:", deadline=deadline)
        self._connection = connection = Connection(server, token, self._deadline)
        self.jobs = RemoteJobs(self, connection)
        self.flows = RemoteFlows(self, connection)
        self.queues = RemoteQueues(self, connection)
        self.schedules = RemoteSchedules(self, connection)
        self.workers = RemoteWorkers(self, connection)
        self.stats = RemoteStats(self, connection)

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

    def worker(self, **options: Any) -> Never:
        """Refused: a worker needs the store itself."""
        raise InvalidOption("worker", f"needs the store itself, and {self.store} is a server: use App(...)")

    async def aclose(self) -> None:
        """Close the connections of this event loop; the next verb opens new ones."""
        await self._connection.close()

    async def _ready(self) -> Store:
        raise InvalidOption("server", f"this needs the store itself, and {self.store} is a server")

    def _works_without_loop(self) -> bool:
        return False

    def _handle(self, id_: str, existing: bool, returns: Any) -> Handle[Any]:
        return RemoteHandle(self, id_, existing, returns)

    async def _enqueue(self, jobs: Sequence[NewJob], connection: object = None) -> list[Enqueued]:
        if connection is not None:
            raise InvalidOption("connection", "a server cannot take part in a transaction of yours")
        if len(jobs) > MAX_BULK:
            raise InvalidOption("jobs", f"{len(jobs):,} jobs; at most {MAX_BULK:,} at once through a server")
        body = {"jobs": [_request(job) for job in jobs]}
        try:
            receipt = await self._connection.call("POST", "/jobs/bulk", BulkReceipt, body=body)
        except InvalidInput as error:
            if len(jobs) > 1:
                raise
            raise with_field(error, error.field.removeprefix("jobs[0].")) from None
        except StoreUnavailable as error:
            if error.maybe_done:
                raise EnqueueUnknown([job.id for job in jobs], str(error)) from error
            raise EnqueueFailed(f"nothing was stored: {error}") from error
        return [Enqueued(each.id, each.existing) for each in receipt.jobs]


class RemoteHandle(Handle[T], eq=False):
    """A job that was enqueued through a server."""

    async def aresult(self, timeout: Duration | None = None) -> T:
        """Wait until the job has ended, and return its result; the token needs the scope `payloads`."""
        seconds = None if timeout is None else duration(timeout, "timeout") / SECOND
        job = await self._read()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                job = await self._ended(job)
        if not job.finished:
            job = await self._read()
        if not job.finished:
            raise TimeoutError(f"job {job.id} is still {job.status} after {seconds:g} s")
        if job.status is Status.CANCELLED:
            raise JobCancelled(job.id, job.reason or "no reason kept")
        if job.status is Status.COMPLETED and "result" in job.hidden:
            raise RemoteRefused(Problem(status=403, code=MissingScope.code, title=NO_RESULT.format(id=job.id)))
        return self._result_of(job)

    async def _ended(self, job: JobRecord) -> JobRecord:
        pause = MIN_POLL
        while not job.finished:
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_POLL)
            job = await self._read()
        return job

    async def _read(self) -> JobRecord:
        home: Any = self._home
        found: JobRecord = await home.jobs._record(self.id)
        return found


def _not_here(what: str, instead: str) -> InvalidOption:
    return InvalidOption(what, f"is declared by the app of a worker, not through a server; to change one: {instead}")


def _request(job: NewJob) -> dict[str, Any]:
    if job.parents or job.result_params or job.flow:
        what = "group" if job.flow and is_group_id(job.flow) else "chain"
        what = "flow" if job.type == FLOW_TYPE else what
        raise InvalidOption(what, "cannot be enqueued through a server")
    values = {
        "type": job.type,
        "payload": msgspec.Raw(job.payload.encode()),
        "id": job.id,
        "queue": job.queue,
        "priority": job.priority,
        "delay": _seconds(job.delay) or None,
        "run_at": None if job.run_at is None else to_datetime(job.run_at),
        "idempotency_key": job.idempotency_key,
        "idempotency_window": _seconds(job.idempotency_window),
        "on_conflict": job.on_conflict if job.idempotency_key else None,
        "concurrency_key": job.concurrency_key,
        "key_limit": job.key_limit,
        "key_order": None if job.key_strict is None else "strict" if job.key_strict else "any",
        "key_rate": None if job.key_rate is None else str(job.key_rate),
        "rate_cost": job.rate_cost,
        "tenant": job.tenant,
        "parent": job.parent,
        "max_attempts": job.max_attempts,
        "expires": _seconds(job.expires) if job.expires_at is None else to_datetime(job.expires_at),
        "tags": list(job.tags) or None,
        "meta": None if job.meta is None else msgspec.Raw(job.meta.encode()),
    }
    given = {name: value for name, value in values.items() if value is not None}
    if job.timeout is not None:
        given["timeout"] = None if job.timeout == NO_TIMEOUT else _seconds(job.timeout)
    return given


def _seconds(micros: Micros | None) -> float | None:
    return None if micros is None else micros / SECOND
