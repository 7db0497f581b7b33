"""The roles of those who keep the SQLite store going: leases, workers, the office, hints, statistics."""

from collections.abc import Sequence

from windlass.core.course import Stretch, Window
from windlass.core.meter import Meter, Recent
from windlass.core.moments import SECOND, Micros
from windlass.core.samples import Sampled
from windlass.store.records import (
    Campaign,
    CancelRequest,
    LeaseRequest,
    Renewal,
    Rescued,
    RunnerEnd,
    WorkerInfo,
)
from windlass.store.samples import sample
from windlass.store.sqlite import leader, leases, meters, workers
from windlass.store.sqlite.access import Access
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.park import unpark
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.rescue import end_runner, needs_rescue, rescue
from windlass.store.sqlite.samples import SqliteShelves
from windlass.store.sqlite.vigil import SqliteVigil
from windlass.store.sqlite.work import has_work
from windlass.store.vigil import Tell


class SqliteLeases:
    """Leases and proofs of life."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def open(self, request: LeaseRequest) -> None:
        await self._access.write(lambda db: leases.open_lease(db, request))

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        return await self._access.write(lambda db: leases.renew(db, worker, runners, length))

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        return await self._access.write(lambda db: end_runner(db, ended))

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        return await self._access.read(lambda db: leases.cancels(db, worker))

    async def rescue(self, limit: int) -> list[Rescued]:
        if not await self._access.read(needs_rescue):
            return []
        return await self._access.write(lambda db: rescue(db, limit))

    def vouch(self, holder: str) -> None:
        self._access.lanes.vouchers.take(holder)

    def unvouch(self, holder: str) -> None:
        self._access.lanes.vouchers.release(holder)


class SqliteWorkers:
    """The registry of workers."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def beat(self, worker: WorkerInfo) -> None:
        def work(db: Db) -> None:
            workers.beat(db, worker)
            unpark(db, worker.types)

        await self._access.write(work)

    async def forget(self, worker: str) -> None:
        await self._access.write(lambda db: workers.forget(db, worker))

    async def list(self) -> list[WorkerInfo]:
        return await self._access.read(workers.live_workers)


class SqliteLeader:
    """The coordinator's office."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def campaign(self, bid: Campaign) -> int | None:
        def work(db: Db) -> int | None:
            term = leader.campaign(db, bid)
            if term is not None:
                workers.forget_dead(db)
            return term

        if await self._access.read(lambda db: leader.is_taken(db, bid)):
            return None
        return await self._access.write(work)

    async def resign(self, candidate: str) -> None:
        await self._access.write(lambda db: leader.resign(db, candidate))


class SqliteSignals:
    """Wake-up hints."""

    def __init__(self, access: Access, recall: Recall) -> None:
        self._access = access
        self._recall = recall

    relayed = False
    telling = False
    silence = None

    def attend(self, queues: Sequence[str]) -> None:
        """What is seen here is that something was written, not what."""

    def hear(self) -> None:
        """Everybody sees the file for himself."""

    def mark(self) -> int:
        return self._access.lanes.watch.version()

    async def wait(self, mark: int, seconds: float) -> bool:
        opening = self._recall.next_opening()
        if opening is None or opening / SECOND >= seconds:
            return await self._access.lanes.watch.wait(mark, seconds)
        # Tokens come without anything being written.
        await self._access.lanes.watch.wait(mark, opening / SECOND)
        return True

    async def work(self, names: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, names, types, self._recall))

    def vigil(self, tell: Tell) -> SqliteVigil:
        return SqliteVigil(self._access, tell)


class SqliteStats:
    """Meters, added up; samples, made of them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shelves = SqliteShelves(access)

    async def record(self, measured: Sequence[Meter]) -> None:
        await self._access.write(lambda db: meters.record(db, measured))

    async def recent(self, length: Micros) -> Recent:
        return await self._access.read(lambda db: meters.recent(db, length))

    async def oldest(self) -> dict[str, Micros]:
        return await self._access.read(meters.oldest)

    async def sample(self) -> Sampled:
        return await sample(self._shelves)

    async def course(self, window: Window) -> Stretch:
        return await self._shelves.stretch(window)
