"""Schedules on a store that does not keep any yet: there are none, and whoever wants one is told."""

from collections.abc import Sequence

from windlass.core.firing import Fired, Firing
from windlass.core.schedule import Schedule, ScheduleSettings
from windlass.errors import ConfigError
from windlass.store.schedules import DueSchedules


class Unscheduled:
    """The role where it is missing."""

    async def declare(self, schedules: dict[str, ScheduleSettings]) -> None:
        if schedules:
            raise _missing()

    async def add(self, name: str, changed: ScheduleSettings) -> Schedule | None:
        raise _missing()

    async def change(self, name: str, changed: ScheduleSettings, was: ScheduleSettings) -> Schedule | None:
        return None

    async def pause(self, name: str) -> Schedule | None:
        return None

    async def resume(self, name: str) -> Schedule | None:
        return None

    async def remove(self, name: str) -> bool:
        return False

    async def get(self, names: Sequence[str]) -> list[Schedule | None]:
        return [None for _ in names]

    async def due(self, limit: int) -> DueSchedules:
        return DueSchedules(0, (), None)

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        return [Fired(done=False) for _ in firings]

    async def list(self) -> list[Schedule]:
        return []


def _missing() -> ConfigError:
    return ConfigError("schedules are kept only on SQLite and PostgreSQL so far: this store has none")
