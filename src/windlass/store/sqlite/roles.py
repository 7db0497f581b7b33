"""The roles of the store contract: verbs bound to the threads of the database."""

import contextlib
from collections.abc import Sequence

from windlass.core.flow.queue import QueueSettings
from windlass.core.jobs.job import Claimed, Enqueued, NewJob
from windlass.core.moments import SECOND
from windlass.core.schedules.schedule import ScheduleSettings
from windlass.core.stats.samples import Sampled
from windlass.errors import StoreUnavailable
from windlass.store.contract_upkeep import OnEnded
from windlass.store.records import Admitted, Campaign, ClaimRequest, Rescued, WorkerInfo
from windlass.store.samples import sample
from windlass.store.sqlite.connection.access import Access, Role, read_verb, write_verb
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.limits.limits import ClaimMemory
from windlass.store.sqlite.liveness import leases, workers
from windlass.store.sqlite.verbs import documents, operator_verbs, queues, read_jobs, schedules, stats
from windlass.store.sqlite.verbs.admit import admit, age, is_any_aged, next_due_in
from windlass.store.sqlite.verbs.cancel import expire, is_any_expired
from windlass.store.sqlite.verbs.claim import claim, has_work
from windlass.store.sqlite.verbs.completion_watcher import SqliteCompletionWatcher
from windlass.store.sqlite.verbs.enqueue import enqueue
from windlass.store.sqlite.verbs.park import is_any_parked, needs_parking, park, unpark, unpark_known
from windlass.store.sqlite.verbs.prune import prune
from windlass.store.sqlite.verbs.settle import held, note, settle
from windlass.store.sqlite.verbs.stats import SqliteSampleStore


class SqliteJobs(Role):
    """The walk of a job."""

    grouped = True

    def __init__(self, access: Access, memory: ClaimMemory) -> None:
        super().__init__(access)
        self._memory = memory

    settle = write_verb(settle)
    note = write_verb(note)
    held = read_verb(held)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._access.write_combined(enqueue, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        def work(db: Db) -> list[Enqueued]:
            if queues.undeclared(db, declared):
                queues.declare(db, declared)
            return enqueue(db, jobs)

        return await self._access.threads.inside(connection, work)

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._access.write(lambda db: claim(db, request, self._memory))

    # The others read first: without anything to do they take no lock.

    async def admit(self, limit: int, queues: Sequence[str] | None = None) -> Admitted:
        wait = await self._access.read(next_due_in)
        if wait is None or wait > 0:
            return Admitted(0, wait)
        return await self._access.write(lambda db: admit(db, limit))

    async def age(self, limit: int) -> int:
        if not await self._access.read(is_any_aged):
            return 0
        return await self._access.write(lambda db: age(db, limit))

    async def expire(self, limit: int) -> int:
        if not await self._access.read(is_any_expired):
            return 0
        return await self._access.write(lambda db: expire(db, limit))

    async def park(self) -> dict[str, int]:
        await unpark_known(self._access)
        if not await self._access.read(needs_parking):
            return {}
        return await self._access.write(park)


class SqliteOperator(Role):
    """What people do with jobs."""

    get = read_verb(read_jobs.get)
    outcomes = read_verb(read_jobs.outcomes)
    cancel = write_verb(operator_verbs.cancel)
    retry = write_verb(operator_verbs.retry)
    run_now = write_verb(operator_verbs.run_now)
    change = write_verb(operator_verbs.change)
    delete = write_verb(operator_verbs.delete)
    select = read_verb(read_jobs.select)
    prune = write_verb(prune)
    counts = read_verb(read_jobs.counts)
    failures = read_verb(read_jobs.failures)
    list = read_verb(read_jobs.list_jobs)
    why_facts = read_verb(read_jobs.why_facts)


class SqliteQueues(Role):
    """Queues and their settings."""

    change = write_verb(queues.change)
    pause = write_verb(queues.pause)
    resume = write_verb(queues.resume)
    close = write_verb(queues.close)
    open = write_verb(queues.open_)
    list = read_verb(queues.all_queues)

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        if await self._access.read(lambda db: queues.undeclared(db, declared)):
            await self._access.write(lambda db: queues.declare(db, declared))


class SqliteSchedules(Role):
    """Schedules and their ticks."""

    add = write_verb(schedules.add)
    change = write_verb(schedules.change)
    pause = write_verb(schedules.pause)
    resume = write_verb(schedules.resume)
    remove = write_verb(schedules.remove)
    fire = write_verb(schedules.fire)
    get = read_verb(schedules.get)
    due = read_verb(schedules.due)
    list = read_verb(schedules.all_schedules)

    async def declare(self, declared: dict[str, ScheduleSettings]) -> None:
        if not declared:
            return
        if await self._access.read(lambda db: schedules.undeclared(db, declared)):
            await self._access.write(lambda db: schedules.declare(db, declared))


class SqliteDocuments(Role):
    """Small JSON records."""

    add = write_verb(documents.add)
    replace = write_verb(documents.replace)
    delete = write_verb(documents.delete)
    trim = write_verb(documents.trim)
    get = read_verb(documents.get)
    list = read_verb(documents.newest)


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

    async def beat(self, worker: WorkerInfo) -> None:
        await self._access.write(lambda db: workers.beat(db, worker))
        # The worker is registered even if this fails: the duty unparks the rest.
        with contextlib.suppress(StoreUnavailable):
            if await self._access.read(lambda db: is_any_parked(db, worker.types)):
                await self._access.write(lambda db: unpark(db, worker.types))


class SqliteLeader(Role):
    """The leadership of the coordinator."""

    resign = write_verb(workers.resign)

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
        """No-op: a commit does not tell its queues."""

    def wake(self) -> None:
        """No-op: every process watches the file."""

    def cursor(self) -> int:
        return self._access.threads.commits.version()

    async def wait(self, cursor: int, seconds: float) -> bool:
        ready_in = self._memory.next_ready_in()
        if ready_in is None or ready_in / SECOND >= seconds:
            return await self._access.threads.commits.wait(cursor, seconds)
        # Tokens come without a commit.
        await self._access.threads.commits.wait(cursor, ready_in / SECOND)
        return True

    async def has_work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, queues, types, self._memory))

    def watch_completions(self, tell: OnEnded) -> SqliteCompletionWatcher:
        return SqliteCompletionWatcher(self._access, tell)


class SqliteStats(Role):
    """Meters, and the samples made of them."""

    record = write_verb(stats.record)
    recent = read_verb(stats.recent)
    oldest = read_verb(stats.oldest)
    samples = read_verb(stats.samples)

    async def sample(self) -> Sampled:
        return await sample(SqliteSampleStore(self._access))
