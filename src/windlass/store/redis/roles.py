"""The roles of the Redis store: each verb one call into its own file."""

from collections.abc import Sequence

from windlass.core.change import JobChange
from windlass.core.circumstances import Circumstances
from windlass.core.firing import Fired, Firing
from windlass.core.ids import JobId
from windlass.core.job import Claimed, Enqueued, Job, NewJob
from windlass.core.moments import Micros
from windlass.core.outcome import Settlement
from windlass.core.queue import Queue, QueueSettings
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.errors import InvalidOption
from windlass.store.records import (
    Admitted,
    ClaimRequest,
    Counts,
    Held,
    JobFilter,
    JobPage,
    Moved,
    Note,
    Settled,
)
from windlass.store.redis import change, counts, look, operate, queues, roster, schedules, walk
from windlass.store.redis.access import Access
from windlass.store.redis.admit import admit
from windlass.store.redis.age import age
from windlass.store.redis.circumstances import circumstances
from windlass.store.redis.claim import claim
from windlass.store.redis.expire import expire
from windlass.store.redis.fire import fire
from windlass.store.redis.held import held
from windlass.store.redis.joint import Joint
from windlass.store.redis.note import note
from windlass.store.redis.park import park
from windlass.store.redis.prune import prune
from windlass.store.redis.settle import settle
from windlass.store.schedules import DueSchedules


class RedisJobs:
    """The walk of a job."""

    grouped = False

    def __init__(self, access: Access) -> None:
        self._access = access
        self._handing_in = Joint(access)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        handed_in = await self._handing_in.enqueue(jobs)
        self._access.server.hear()
        return handed_in

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        raise InvalidOption(
            "connection", "is of no use here: Redis has no transaction that could hold a caller's own writes and jobs"
        )

    async def admit(self, limit: int) -> Admitted:
        return await admit(self._access, limit)

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await claim(self._access, request)

    async def age(self, limit: int) -> int:
        return await age(self._access, limit)

    async def expire(self, limit: int) -> int:
        return await expire(self._access, limit)

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        return await settle(self._access, settlements)

    async def note(self, notes: Sequence[Note]) -> None:
        await note(self._access, notes)

    async def held(self, runner: str) -> list[Held]:
        return await held(self._access, runner)

    async def park(self) -> dict[str, int]:
        return await park(self._access)


class RedisOperator:
    """What people do with jobs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        return await look.get(self._access, ids)

    async def outcomes(self, ids: Sequence[JobId]) -> list[str | None]:
        return await look.outcomes(self._access, ids)

    async def cancel(self, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
        return await operate.cancel(self._access, ids, reason)

    async def retry(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await operate.retry(self._access, ids)

    async def run_now(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await operate.run_now(self._access, ids)

    async def change(self, ids: Sequence[JobId], changed: JobChange) -> list[Moved | None]:
        return await change.change(self._access, ids, changed)

    async def delete(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await operate.delete(self._access, ids)

    async def select(self, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
        return await walk.select(self._access, wanted, limit, after)

    async def prune(self, limit: int) -> Sequence[JobId]:
        return await prune(self._access, limit)

    async def counts(self) -> Counts:
        return await counts.counts(self._access)

    async def failures(self, limit: int) -> list[Job]:
        return await counts.failures(self._access, limit)

    async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
        return await walk.list_jobs(self._access, wanted, limit, cursor)

    async def circumstances(self, id: JobId) -> Circumstances | None:
        return await circumstances(self._access, id)


class RedisQueues:
    """Queues and their settings."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        await queues.declare(self._access, declared)

    async def change(self, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
        return await queues.change(self._access, name, changed, was)

    async def pause(self, name: str, length: Micros | None) -> Queue:
        return await queues.pause(self._access, name, length)

    async def resume(self, name: str) -> Queue:
        return await queues.resume(self._access, name)

    async def close(self, name: str) -> Queue:
        return await queues.close(self._access, name)

    async def open(self, name: str) -> Queue:
        return await queues.open_(self._access, name)

    async def list(self) -> list[Queue]:
        return await queues.all_queues(self._access)


class RedisSchedules:
    """Schedules, and the jobs of their ticks."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def declare(self, declared: dict[str, ScheduleSettings]) -> None:
        await schedules.declare(self._access, declared)

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        return await schedules.add(self._access, name, changed)

    async def change(self, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
        return await schedules.change(self._access, name, changed, was)

    async def pause(self, name: str) -> Schedule | None:
        return await schedules.pause(self._access, name)

    async def resume(self, name: str) -> Schedule | None:
        return await schedules.resume(self._access, name)

    async def remove(self, name: str) -> bool:
        return await schedules.remove(self._access, name)

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        return await roster.get(self._access, names)

    async def due(self, limit: int) -> DueSchedules:
        return await roster.due(self._access, limit)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        fired = await fire(self._access, firings)
        self._access.server.hear()
        return fired

    async def list(self) -> list[Schedule]:
        return await roster.all_schedules(self._access)
