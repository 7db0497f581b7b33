"""Reads schedules: by name, all of them, or those with a due tick."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.core.schedules.schedule import Schedule
from windlass.store.redis.connection.access import Access
from windlass.store.redis.schedules.schedule_state import ScheduleState, schedule_from, tick_of, to_state
from windlass.store.schedules import DueSchedules

MAX_READ = 250
"""In one call; fewer, if they are much text."""


async def read_by_name(access: Access, names: Sequence[str]) -> tuple[Micros, dict[str, ScheduleState]]:
    """The store's time, and those of these names that there are."""
    now, found, at = 0, dict[str, ScheduleState](), 0
    while at < len(names):
        asked = names[at : at + MAX_READ]
        now, furthest, *rows = await access.call_global("read_schedules", [(name,) for name in asked])
        found |= {name: to_state(name, row, now, furthest) for name, row in zip(asked, rows, strict=False) if row}
        at += len(rows)
    return now, found


async def get(access: Access, names: Sequence[str]) -> list[Schedule | None]:
    """Schedules by their names."""
    _, found = await read_by_name(access, names)
    return [found[name].schedule if name in found else None for name in names]


async def all_schedules(access: Access) -> list[Schedule]:
    """Every one, by name; not one picture of all."""
    _, found = await read_by_name(access, await all_names(access))
    return [found[name].schedule for name in sorted(found)]


async def all_names(access: Access) -> list[str]:
    """In no order; none twice."""
    names: dict[str, None] = {}
    cursor = b"0"
    while True:
        cursor, pairs = await access.command("HSCAN", "schedule_states", cursor, "COUNT", MAX_READ)
        names |= dict.fromkeys(name.decode() for name in pairs[::2])
        if cursor == b"0":
            return list(names)


async def due(access: Access, limit: int) -> DueSchedules:
    """By an index that holds only what may come, a portion at a time."""
    found: list[Schedule] = []
    more = True
    while more and len(found) < limit:
        request = min(MAX_READ, limit - len(found)), len(found)
        now, first, more, *rows = await access.call_global("due_schedules", request)
        found += map(_scheduled, rows[::3], rows[1::3], rows[2::3])
    return DueSchedules(now, tuple(found), int(first) - now if first and not found else None)


async def next_tick(access: Access, name: str | None) -> Micros | None:
    """When a schedule comes next; None: never, it is paused, or there is none."""
    standing = None if name is None else await access.command("HGET", "schedule_states", name)
    return None if standing is None else tick_of(schedule_from(name or "", standing))


def _scheduled(name: bytes, standing: bytes, settings: bytes) -> Schedule:
    return schedule_from(name.decode(), standing, settings)
