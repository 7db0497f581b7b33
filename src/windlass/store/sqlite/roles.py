"""The roles of the store contract: verbs bound to the threads of the database."""

import contextlib
from collections.abc import Sequence

from windlass.core.flow.queue import QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.job import Claimed, Enqueued, Job, NewJob
from windlass.core.moments import SECOND
from windlass.core.schedules.firing import Fired, Firing
from windlass.core.why.facts import WhyFacts
from windlass.errors import StoreUnavailable
from windlass.store.contract_upkeep import OnEnded
from windlass.store.drive import drive
from windlass.store.records import Admitted, Campaign, ClaimRequest, Rescued, WorkerInfo, known_types
from windlass.store.sql import queues, read_jobs, schedules
from windlass.store.sql.documents import DocumentVerbs
from windlass.store.sql.session import reading
from windlass.store.sql.stats import StatsVerbs
from windlass.store.sql.why_facts import why_facts
from windlass.store.sqlite.connection.access import Access, Role, read_verb, write_verb
from windlass.store.sqlite.db import Db, SharedDb
from windlass.store.sqlite.limits.limits import ClaimMemory
from windlass.store.sqlite.liveness import leases, workers
from windlass.store.sqlite.verbs import operator_verbs
from windlass.store.sqlite.verbs.admit import admit, age, is_any_aged, next_due_in, oldest
from windlass.store.sqlite.verbs.cancel import expire, is_any_expired
from windlass.store.sqlite.verbs.claim import claim, has_work
from windlass.store.sqlite.verbs.completion_watcher import SqliteCompletionWatcher
from windlass.store.sqlite.verbs.ended import dead_ends, ended
from windlass.store.sqlite.verbs.enqueue import enqueue
from windlass.store.sqlite.verbs.park import is_any_parked, needs_parking, park, parked_types, unpark, unpark_known
from windlass.store.sqlite.verbs.prune import prune
from windlass.store.sqlite.verbs.settle import note, settle


class SqliteJobs(Role):
    """The life of a job: enqueue, admit, claim, settle."""

    grouped = True

    def __init__(self, access: Access, memory: ClaimMemory) -> None:
        super().__init__(access)
        self._memory = memory

    settle = write_verb(settle)
    note = write_verb(note)
    held = reading(read_jobs.held)
    parked_types = read_verb(parked_types)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._access.write_combined(enqueue, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        def work(db: Db) -> list[Enqueued]:
            drive(queues.declare_missing(SharedDb(db), declared))
            return enqueue(db, jobs)

        return await self._access.threads.inside(connection, work)

    async def get_inside(self, connection: object, ids: Sequence[JobId]) -> list[Job | None]:
        return await self._access.threads.read_inside(connection, lambda db: drive(read_jobs.get(SharedDb(db), ids)))

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._access.write(lambda db: claim(db, request, self._memory))

    # The verbs below read first, so that they take no lock if there is nothing to do.

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        wait = await self._access.read(next_due_in)
        if wait is None or wait > 0:
            return Admitted(0, wait)
        return await self._access.write(lambda db: admit(db, limit))

    async def age(self, limit: int) -> int:
        if not await self._access.read(is_any_aged):
            return 0
        return await self._access.write(lambda db: age(db, limit))

    async def expire(self, limit: int) -> Sequence[JobId]:
        if not await self._access.read(is_any_expired):
            return ()
        return await self._access.write(lambda db: expire(db, limit))

    async def park(self) -> dict[str, int]:
        await unpark_known(self._access)
        if not await self._access.read(needs_parking):
            return {}
        return await self._access.write(park)


class SqliteOperator(Role, read_jobs.ReadVerbs):
    """What operators and programs do with jobs."""

    cancel = write_verb(operator_verbs.cancel)
    retry = write_verb(operator_verbs.retry)
    run_now = write_verb(operator_verbs.run_now)
    change = write_verb(operator_verbs.change)
    delete = write_verb(operator_verbs.delete)
    prune = write_verb(prune)
    ended = read_verb(ended)
    dead_ends = read_verb(dead_ends)

    async def why_facts(self, id: JobId) -> WhyFacts | None:
        return await self._sessions.read(lambda db: why_facts(db, id, _live_workers))


class SqliteQueues(Role, queues.QueueVerbs):
    """Queues and their settings."""


class SqliteSchedules(Role, schedules.ScheduleVerbs):
    """Schedules and their ticks."""

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        return await self._sessions.write(lambda db: schedules.fire(db, firings, _enqueue))


class SqliteDocuments(Role, DocumentVerbs):
    """Small JSON records."""


class SqliteLeases(Role):
    """Leases and liveness locks."""

    open = write_verb(leases.open_)
    renew = write_verb(leases.renew)
    end = write_verb(leases.end)
    cancels = read_verb(leases.cancels)

    async def rescue(self, limit: int) -> list[Rescued]:
        if not await self._access.read(leases.needs_rescue):
            return []
        return await self._access.write(lambda db: leases.rescue(db, limit))

    def hold_liveness_lock(self, holder: str) -> None:
        self._access.threads.liveness_locks.take(holder)

    def release_liveness_lock(self, holder: str) -> None:
        self._access.threads.liveness_locks.release(holder)


class SqliteWorkers(Role):
    """The registry of workers."""

    unregister = write_verb(workers.unregister)
    list = read_verb(workers.live_workers)

    async def beat(self, *infos: WorkerInfo) -> None:
        await self._access.write(lambda db: workers.beat(db, infos))
        types = known_types(infos)
        # The workers are registered even if this fails; the duty `park` unparks the rest.
        with contextlib.suppress(StoreUnavailable):
            if await self._access.read(lambda db: is_any_parked(db, types)):
                await self._access.write(lambda db: unpark(db, types))


class SqliteLeader(Role):
    """The leadership of the coordinator."""

    resign = write_verb(workers.resign)
    current = read_verb(workers.leader)

    async def campaign(self, bid: Campaign) -> int | None:
        if await self._access.read(lambda db: workers.is_led_by_other(db, bid)):
            return None
        return await self._access.write(lambda db: workers.campaign(db, bid))


class SqliteSignals(Role):
    """Wake-up hints."""

    via_supervisor = False
    names_queues = False
    outage = None

    def __init__(self, access: Access, memory: ClaimMemory) -> None:
        super().__init__(access)
        self._memory = memory

    def subscribe(self, queues: Sequence[str]) -> None:
        """No-op: a commit does not name its queues."""

    def wake(self) -> None:
        """No-op: every process watches the file."""

    def cursor(self) -> int:
        return self._access.threads.commits.version()

    async def wait(self, cursor: int, seconds: float) -> bool:
        ready_in = self._memory.next_ready_in()
        if ready_in is None or ready_in / SECOND >= seconds:
            return await self._access.threads.commits.wait(cursor, seconds)
        # Token buckets are refilled without a commit that the watcher could see.
        await self._access.threads.commits.wait(cursor, ready_in / SECOND)
        return True

    async def has_work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, queues, types, self._memory))

    def watch_completions(self, on_ended: OnEnded) -> SqliteCompletionWatcher:
        return SqliteCompletionWatcher(self._access, on_ended)


class SqliteStats(Role, StatsVerbs):
    """Meters, and the samples made of them."""

    oldest = read_verb(oldest)


async def _live_workers(db: SharedDb) -> list[WorkerInfo]:
    return workers.live_workers(db.db)


async def _enqueue(db: SharedDb, jobs: Sequence[NewJob]) -> list[Enqueued]:
    return enqueue(db.db, jobs)
