"""The roles of the SQLite store: each verb one call into a lane."""

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
from windlass.store.schedules import DueSchedules
from windlass.store.sqlite import change, look, operate, queues, schedules
from windlass.store.sqlite.access import Access
from windlass.store.sqlite.admit import admit, next_due_in
from windlass.store.sqlite.age import age, is_any_aged
from windlass.store.sqlite.circumstances import circumstances
from windlass.store.sqlite.claim import claim
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.enqueue import enqueue
from windlass.store.sqlite.expire import expire, is_any_due
from windlass.store.sqlite.note import note
from windlass.store.sqlite.park import needs_parking, park
from windlass.store.sqlite.prune import prune
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.settle import settle


class SqliteJobs:
    """The walk of a job."""

    grouped = True

    def __init__(self, access: Access, recall: Recall) -> None:
        self._access = access
        self._recall = recall

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        return await self._access.write_jointly(enqueue, jobs)

    async def enqueue_inside(
        self, connection: object, jobs: Sequence[NewJob], declared: dict[str, QueueSettings]
    ) -> list[Enqueued]:
        def work(db: Db) -> list[Enqueued]:
            if queues.undeclared(db, declared):
                queues.declare(db, declared)
            return enqueue(db, jobs)

        return await self._access.inside(connection, work)

    async def admit(self, limit: int) -> Admitted:
        # Looks first: nothing due, nothing locked.
        wait = await self._access.read(next_due_in)
        if wait is None or wait > 0:
            return Admitted(0, wait)
        return await self._access.write(lambda db: admit(db, limit))

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        return await self._access.write(lambda db: claim(db, request, self._recall))

    async def age(self, limit: int) -> int:
        if not await self._access.read(is_any_aged):
            return 0
        return await self._access.write(lambda db: age(db, limit))

    async def expire(self, limit: int) -> int:
        if not await self._access.read(is_any_due):
            return 0
        return await self._access.write(lambda db: expire(db, limit))

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        return await self._access.write(lambda db: settle(db, settlements))

    async def note(self, notes: Sequence[Note]) -> None:
        await self._access.write(lambda db: note(db, notes))

    async def held(self, runner: str) -> list[Held]:
        rows = await self._access.read(lambda db: db.rows("held", {"runner": runner}))
        return [Held(*row) for row in rows]

    async def park(self) -> dict[str, int]:
        if not await self._access.read(needs_parking):
            return {}
        return await self._access.write(park)


class SqliteOperator:
    """What people do with jobs."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def get(self, ids: Sequence[JobId]) -> list[Job | None]:
        return await self._access.read(lambda db: look.get(db, ids))

    async def outcomes(self, ids: Sequence[JobId]) -> list[str | None]:
        return await self._access.read(lambda db: look.outcomes(db, ids))

    async def cancel(self, ids: Sequence[JobId], reason: str) -> list[Moved | None]:
        return await self._access.write(lambda db: operate.cancel(db, ids, reason))

    async def retry(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await self._access.write(lambda db: operate.retry(db, ids))

    async def run_now(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await self._access.write(lambda db: change.run_now(db, ids))

    async def change(self, ids: Sequence[JobId], changed: JobChange) -> list[Moved | None]:
        return await self._access.write(lambda db: change.change(db, ids, changed))

    async def delete(self, ids: Sequence[JobId]) -> list[Moved | None]:
        return await self._access.write(lambda db: operate.delete(db, ids))

    async def select(self, wanted: JobFilter, limit: int, after: JobId | None) -> list[JobId]:
        return await self._access.read(lambda db: look.select_ids(db, wanted, limit, after))

    async def prune(self, limit: int) -> Sequence[JobId]:
        return await self._access.write(lambda db: prune(db, limit))

    async def counts(self) -> Counts:
        return await self._access.read(look.counts)

    async def failures(self, limit: int) -> list[Job]:
        return await self._access.read(lambda db: look.failures(db, limit))

    async def list(self, wanted: JobFilter, limit: int, cursor: str | None) -> JobPage:
        return await self._access.read(lambda db: look.list_jobs(db, wanted, limit, cursor))

    async def circumstances(self, id: JobId) -> Circumstances | None:
        return await self._access.read(lambda db: circumstances(db, id))


class SqliteQueues:
    """Queues and their settings."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def declare(self, declared: dict[str, QueueSettings]) -> None:
        if await self._access.read(lambda db: queues.undeclared(db, declared)):
            await self._access.write(lambda db: queues.declare(db, declared))

    async def change(self, name: str, changed: QueueSettings, was: QueueSettings | None = None) -> Queue:
        return await self._access.write(lambda db: queues.change(db, name, changed, was))

    async def pause(self, name: str, length: Micros | None) -> Queue:
        return await self._access.write(lambda db: queues.pause(db, name, length))

    async def resume(self, name: str) -> Queue:
        return await self._access.write(lambda db: queues.resume(db, name))

    async def close(self, name: str) -> Queue:
        return await self._access.write(lambda db: queues.close(db, name))

    async def open(self, name: str) -> Queue:
        return await self._access.write(lambda db: queues.open_(db, name))

    async def list(self) -> list[Queue]:
        return await self._access.read(queues.all_queues)


class SqliteSchedules:
    """What is handed in again and again."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def declare(self, declared: dict[str, ScheduleSettings]) -> None:
        if not declared:
            return
        if await self._access.read(lambda db: schedules.undeclared(db, declared)):
            await self._access.write(lambda db: schedules.declare(db, declared))

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        return await self._access.write(lambda db: schedules.add(db, name, changed))

    async def change(self, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
        return await self._access.write(lambda db: schedules.change(db, name, changed, was))

    async def pause(self, name: str) -> Schedule | None:
        return await self._access.write(lambda db: schedules.pause(db, name))

    async def resume(self, name: str) -> Schedule | None:
        return await self._access.write(lambda db: schedules.resume(db, name))

    async def remove(self, name: str) -> bool:
        return await self._access.write(lambda db: schedules.remove(db, name))

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        found = await self._access.read(lambda db: schedules.named(db, names))
        return [found.get(name) for name in names]

    async def due(self, limit: int) -> DueSchedules:
        return await self._access.read(lambda db: schedules.due(db, limit))

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        return await self._access.write(lambda db: schedules.fire(db, firings))

    async def list(self) -> list[Schedule]:
        return await self._access.read(schedules.all_schedules)
