"""RestStore: the store of a worker that reaches only a REST server.

It has the verbs that supervisor, runner and handlers need. Admission, rescue, statistics, schedules and
declarations are the server's, or the coordinator's.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from windlass.core.flow.queue import Queue, QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.job import Job
from windlass.core.jobs.retry import StoredPolicy
from windlass.core.moments import SECOND, Micros
from windlass.core.stats.meter import Meter
from windlass.core.status import Status
from windlass.errors import JobNotFound, StoreUnavailable
from windlass.remote.connection import Connection
from windlass.remote.work.elsewhere import Elsewhere
from windlass.remote.work.jobs import RestJobs
from windlass.remote.work.leases import RestLeases
from windlass.remote.work.session import CALL_SECONDS, WorkSession
from windlass.server.workers.records import HeldJob, WorkerRules
from windlass.store.clock import since_boot
from windlass.store.contract import JobStore, OperatorStore, QueueStore, Store
from windlass.store.contract_upkeep import LeaderStore, LeaseStore, SignalStore, StatsStore, WorkerStore
from windlass.store.documents import DocumentStore
from windlass.store.records import Campaign, WorkerInfo
from windlass.store.schedules import ScheduleStore

RULES_EVERY: Micros = 10 * SECOND
"""How long the retry policies of queues are cached."""


class RestStore:
    """The store behind a server. `slots`: how many jobs each runner runs at once."""

    works_without_loop = begins_without_loop = False
    is_behind_server = True

    def __init__(self, connection: Connection, slots: int = 1) -> None:
        self._share(WorkSession(connection), slots, CALL_SECONDS)

    def _share(self, session: WorkSession, slots: int, seconds: float | None) -> None:
        self._session, self._slots = session, slots
        server = session.connection.server
        jobs = RestJobs(session, slots, seconds)
        self.jobs = cast(JobStore, jobs)
        self.leases = cast(LeaseStore, RestLeases(session))
        self.workers = cast(WorkerStore, RestWorkers(session))
        self.operator = cast(OperatorStore, RestOperator(session))
        self.queues = cast(QueueStore, RestQueues(session))
        self.signals = cast(SignalStore, RestSignals(jobs))
        self.stats = cast(StatsStore, ServersStats(server))
        self.schedules = cast(ScheduleStore, ServersSchedules(server))
        self.leader = cast(LeaderStore, NoLeader(server))
        self.documents = cast(DocumentStore, Elsewhere(server))

    @property
    def address(self) -> str:
        """The address of the server."""
        return self._session.connection.server

    def with_timeout(self, seconds: float) -> "Store":
        """The same store, with a time limit for enqueues."""
        other = RestStore.__new__(RestStore)
        other._share(self._session, self._slots, seconds)
        return other

    async def tidy(self) -> None:
        """No-op."""

    async def migrate(self) -> list[str]:
        """No-op: the server migrates its store."""
        return []

    async def check_schema(self) -> None:
        """Raise TokenRefused if the server does not accept the token any more."""
        await rules(self._session)

    async def close(self) -> None:
        """Close the connections of this event loop; a claim that waits ends."""
        await self._session.connection.close()


async def rules(session: WorkSession) -> WorkerRules:
    """The server's rules for workers. Raises TokenRefused."""
    return await session.call("", "/claims", WorkerRules)


class RestWorkers(Elsewhere):
    """The server registers a worker when it opens a lease, from the record that is kept here."""

    def __init__(self, session: WorkSession) -> None:
        super().__init__(session.connection.server)
        self._session = session

    async def beat(self, *workers: WorkerInfo) -> None:
        """Keep the record for the next lease."""
        self._session.info = workers[-1]

    async def unregister(self, worker: str) -> None:
        """No-op: a lease that ends is unregistered."""

    async def list(self) -> list[WorkerInfo]:
        """None are known."""
        return []


class RestOperator(Elsewhere):
    """Jobs by id: held ones, and others if the token has the scope `read`."""

    def __init__(self, session: WorkSession) -> None:
        super().__init__(session.connection.server)
        self._session = session

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        held = {job.id: job for runner in list(self._session.cancels) for job in await self._session.held(runner)}
        return [_running(held[id_]) if id_ in held else await self._read(id_) for id_ in ids]

    async def _read(self, id_: JobId) -> Job | None:
        try:
            return await self._session.connection.get(f"/jobs/{id_}", Job)
        except JobNotFound:
            return None


def _running(job: HeldJob) -> Job:
    now = datetime.now(UTC)
    fields = msgspec.structs.asdict(job)
    del fields["claim"]
    return Job(**fields, status=Status.RUNNING, payload=None, run_at=now, created_at=now, updated_at=now)


class RestQueues(Elsewhere):
    """The retry policies of queues; the server applies the other settings."""

    def __init__(self, session: WorkSession) -> None:
        super().__init__(session.connection.server)
        self._session = session
        self._known: list[Queue] | None = None
        self._read_at: Micros = 0
        self._reading: asyncio.Task[None] | None = None

    async def declare(self, queues: dict[str, QueueSettings]) -> None:
        """No-op: the app of the server declares."""

    async def list(self) -> list[Queue]:
        """The cached queues, refreshed in the background: only the first call waits for the server."""
        if self._known is None:
            await self._read()
        elif since_boot() - self._read_at > RULES_EVERY and (self._reading is None or self._reading.done()):
            self._reading = asyncio.create_task(self._refresh())
        return self._known or []

    async def _refresh(self) -> None:
        try:
            await self._read()
        except StoreUnavailable:
            self._read_at = since_boot()  # claims report the outage

    async def _read(self) -> None:
        found = await rules(self._session)
        self._known = [
            Queue(name=name, declared=QueueSettings(retry=cast(Any, msgspec.convert(policy, StoredPolicy))))
            for name, policy in found.retry.items()
        ]
        self._read_at = since_boot()


class RestSignals(Elsewhere):
    """Claims wait at the server, so there is no wait between them."""

    via_supervisor, names_queues, outage = False, True, None

    def __init__(self, jobs: RestJobs) -> None:
        super().__init__(jobs._server)
        self._jobs = jobs

    def subscribe(self, queues: Sequence[str]) -> None:
        """No-op."""

    def wake(self) -> None:
        """No-op."""

    def cursor(self) -> int:
        """Always 0."""
        return 0

    async def wait(self, cursor: int, seconds: float) -> bool:
        """Pause only if the server answered the last claim before its wait was over."""
        await asyncio.sleep(0 if self._jobs.waited else seconds)
        return False


class ServersStats(Elsewhere):
    """The server measures what is settled through it."""

    async def record(self, meters: Sequence[Meter]) -> None:
        """No-op."""


class ServersSchedules(Elsewhere):
    """Schedules are declared by the app of the server."""

    async def declare(self, schedules: object) -> None:
        """No-op."""

    async def list(self, *args: Any, **named: Any) -> list[Any]:
        """None are known."""
        return []


class NoLeader(Elsewhere):
    """A worker behind a server never leads."""

    async def campaign(self, bid: Campaign) -> int | None:
        """Not elected."""
        return None

    async def resign(self, candidate: str) -> None:
        """No-op."""

    async def current(self) -> str | None:
        """Not known."""
        return None
