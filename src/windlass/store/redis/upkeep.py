"""The roles of those who keep the Redis store going: leases, workers, the office, hints, statistics."""

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
from windlass.store.redis import leader, leases, meters, rescue, samples, workers
from windlass.store.redis.access import Access
from windlass.store.redis.hints import Hints
from windlass.store.redis.park import unpark
from windlass.store.redis.vigil import RedisVigil
from windlass.store.redis.work import has_work
from windlass.store.vigil import Tell


class RedisLeases:
    """Leases. Only time tells of death: a server cannot see who lives."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._rescuer = rescue.Rescuer()

    async def open(self, request: LeaseRequest) -> None:
        await leases.open_lease(self._access, request)

    async def renew(self, worker: str, runners: Sequence[str], length: Micros) -> Renewal:
        return await leases.renew(self._access, worker, runners, length)

    async def end(self, ended: RunnerEnd) -> list[Rescued]:
        return await rescue.end_runner(self._access, ended)

    async def cancels(self, worker: str) -> tuple[CancelRequest, ...]:
        return await leases.cancels(self._access, worker)

    async def rescue(self, limit: int) -> list[Rescued]:
        return await self._rescuer.rescue(self._access, limit)

    def vouch(self, holder: str) -> None:
        """Nothing to be seen from there."""

    def unvouch(self, holder: str) -> None:
        """Nothing to end."""


class RedisWorkers:
    """The registry of workers."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def beat(self, worker: WorkerInfo) -> None:
        await workers.beat(self._access, worker)
        await unpark(self._access, worker.types)

    async def forget(self, worker: str) -> None:
        await workers.forget(self._access, worker)

    async def list(self) -> list[WorkerInfo]:
        return await workers.live_workers(self._access)


class RedisLeader:
    """The coordinator's office."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def campaign(self, bid: Campaign) -> int | None:
        return await leader.campaign(self._access, bid)

    async def resign(self, candidate: str) -> None:
        await leader.resign(self._access, candidate)


class RedisSignals:
    """Wake-up hints: every process that waits hears them for itself."""

    relayed = False
    telling = True

    def __init__(self, access: Access, hints: Hints) -> None:
        self._access = access
        self._hints = hints

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
        openings = self._access.server.recall.openings
        opens = openings.next_in()
        if opens is None or opens >= seconds * SECOND:
            return await self._hints.wait(mark, seconds)
        await self._hints.wait(mark, opens / SECOND)
        openings.tell()
        return True

    async def work(self, queues: Sequence[str], types: Sequence[str] | None) -> bool:
        return await has_work(self._access, queues, types)

    def vigil(self, tell: Tell) -> RedisVigil:
        return RedisVigil(self._access.server, tell)


class RedisStats:
    """Meters, added up; samples, made of them."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def record(self, measured: Sequence[Meter]) -> None:
        await meters.record(self._access, measured)

    async def recent(self, length: Micros) -> Recent:
        return await meters.recent(self._access, length)

    async def oldest(self) -> dict[str, Micros]:
        return await meters.oldest(self._access)

    async def sample(self) -> Sampled:
        return await samples.make_samples(self._access)

    async def course(self, window: Window) -> Stretch:
        return await samples.course(self._access, window)
