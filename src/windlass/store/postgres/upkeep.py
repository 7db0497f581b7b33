"""The roles of those who keep the PostgreSQL store going: leases, workers, the office, hints, statistics."""

from collections.abc import Sequence

from windlass.core.course import Stretch, Window
from windlass.core.meter import Meter, Recent
from windlass.core.moments import SECOND, Micros
from windlass.core.samples import Sampled
from windlass.store.postgres import leader, leases, meters, workers
from windlass.store.postgres.access import Access
from windlass.store.postgres.claim import Claims
from windlass.store.postgres.db import Db
from windlass.store.postgres.hints import Hints
from windlass.store.postgres.park import unpark
from windlass.store.postgres.rescue import Rescuer, end_runner
from windlass.store.postgres.samples import PostgresShelves
from windlass.store.postgres.vigil import PostgresVigil
from windlass.store.postgres.work import has_work
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
from windlass.store.vigil import Tell


class PostgresLeases:
    """Leases and proofs of life."""

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints
        self._rescuer = Rescuer()

    async def open(self, request: LeaseRequest) -> None:
        await self._access.write(lambda db: leases.feel_pulse(db, request.length))
        await self._access.once(lambda db: leases.open_lease(db, request))

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        moment = await self._access.write(lambda db: leases.feel_pulse(db, length))
        return await self._access.write(lambda db: leases.renew(db, worker, runners, length, moment))

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        rescued = await self._access.write(lambda db: end_runner(db, ended))
        self._hints.announce()
        return rescued

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        return await self._access.read(lambda db: leases.cancels(db, worker))

    async def rescue(self, limit: int) -> list[Rescued]:
        rescued = await self._rescuer.rescue(self._access, limit)
        if rescued:
            self._hints.announce()
        return rescued

    def vouch(self, holder: str) -> None:
        """Only time tells on this store."""

    def unvouch(self, holder: str) -> None:
        """There is nothing to end."""


class PostgresWorkers:
    """The registry of workers."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def beat(self, worker: WorkerInfo) -> None:
        async def work(db: Db) -> None:
            await workers.beat(db, worker)
            await unpark(db, worker.types)

        await self._access.write(work)

    async def forget(self, worker: str) -> None:
        await self._access.write(lambda db: workers.forget(db, worker))

    async def list(self) -> list[WorkerInfo]:
        return await self._access.read(workers.live_workers)


class PostgresLeader:
    """The coordinator's office."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def campaign(self, bid: Campaign) -> int | None:
        async def work(db: Db) -> int | None:
            term = await leader.campaign(db, bid)
            if term is not None:
                await workers.forget_dead(db)
            return term

        if await self._access.read(lambda db: leader.is_taken(db, bid)):
            return None
        await self._access.write(leases.feel_pulse)
        return await self._access.write(work)

    async def resign(self, candidate: str) -> None:
        await self._access.write(lambda db: leader.resign(db, candidate))


class PostgresSignals:
    """Wake-up hints."""

    def __init__(self, access: Access, hints: Hints, claims: Claims) -> None:
        self._access = access
        self._hints = hints
        self._claims = claims

    relayed = True
    telling = True

    @property
    def silence(self) -> str | None:
        return self._hints.silence

    def attend(self, queues: Sequence[str]) -> None:
        self._hints.attend(queues)

    def hear(self) -> None:
        self._hints.hear()

    def mark(self) -> int:
        return self._hints.mark()

    async def wait(self, mark: int, seconds: float) -> bool:
        """Until something was heard, or a queue has tokens again for which the last claim came short."""
        openings = self._claims.ruled.openings
        opens = openings.next_in()
        if opens is None or opens >= seconds * SECOND:
            return await self._hints.wait(mark, seconds)
        await self._hints.wait(mark, opens / SECOND)
        openings.tell()
        return True

    async def work(self, names: Sequence[str], types: Sequence[str] | None) -> bool:
        return await self._access.read(lambda db: has_work(db, names, types, self._claims.ruled.openings))

    def vigil(self, tell: Tell) -> PostgresVigil:
        return PostgresVigil(self._access.server, tell)


class PostgresStats:
    """Meters, added up; samples, made of them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._shelves = PostgresShelves(access)

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
