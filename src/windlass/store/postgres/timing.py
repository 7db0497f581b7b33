"""The role for schedules of the PostgreSQL store: each verb a statement or a transaction."""

from collections.abc import Sequence

from windlass.core.firing import Fired, Firing
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.errors import QueueClosed
from windlass.store.postgres import schedules
from windlass.store.postgres.access import Access
from windlass.store.postgres.handin import HandIn
from windlass.store.schedules import DueSchedules

MOST_ROUNDS = 10
"""Of a firing: as often as queues are closed in the very moment in which it hands something in there."""


class PostgresSchedules:
    """What is handed in again and again."""

    def __init__(self, access: Access, hand_in: HandIn) -> None:
        self._access = access
        self._hand_in = hand_in

    async def declare(self, declared: dict[str, ScheduleSettings]) -> None:
        if not declared:
            return
        access = self._access.for_many(len(declared))
        if await access.read(lambda db: schedules.undeclared(db, declared)):
            await access.write(lambda db: schedules.declare(db, declared))

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        return await self._access.write(lambda db: schedules.add(db, name, changed))

    async def change(self, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
        return await self._access.write(lambda db: schedules.change(db, name, changed, was))

    async def pause(self, name: str) -> Schedule | None:
        return await self._access.write(lambda db: schedules.pause(db, name))

    async def resume(self, name: str) -> Schedule | None:
        return await self._access.write(lambda db: schedules.resume(db, name))

    async def remove(self, name: str) -> bool:
        return await self._access.once(lambda db: schedules.remove(db, name))

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        found = await self._access.read(lambda db: schedules.named(db, names))
        return [found.get(name) for name in names]

    async def due(self, limit: int) -> DueSchedules:
        return await self._access.read(lambda db: schedules.due(db, limit))

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        if not firings:
            return []
        for _ in range(MOST_ROUNDS - 1):
            try:
                return await self._fire(firings)
            except QueueClosed:
                continue  # nothing was done; the next look sees that it is closed
        return await self._fire(firings)

    async def _fire(self, firings: Sequence[Firing]) -> list[Fired]:
        with self._hand_in.telling({job.queue for each in firings for job in each.jobs}) as hint:
            return await self._access.write(lambda db: schedules.fire(db, firings, hint))

    async def list(self) -> list[Schedule]:
        return await self._access.read(schedules.all_schedules)
