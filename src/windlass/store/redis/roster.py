"""Schedules, as whoever looks sees them: by name, all of them, those of which a tick has come."""

from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.core.schedule import Schedule
from windlass.store.redis.access import Access
from windlass.store.redis.standing import Kept, standing_schedule, tick_of, to_kept
from windlass.store.schedules import DueSchedules

MOST_SEEN = 250
"""In one call; fewer, if they are much text."""


async def see(access: Access, names: Sequence[str]) -> tuple[Micros, dict[str, Kept]]:
    """The store's time, and those of these names that there are."""
    now, found, at = 0, dict[str, Kept](), 0
    while at < len(names):
        asked = names[at : at + MOST_SEEN]
        now, furthest, *rows = await access.office("see_schedules", [(name,) for name in asked])
        found |= {name: to_kept(name, row, now, furthest) for name, row in zip(asked, rows, strict=False) if row}
        at += len(rows)
    return now, found


async def get(access: Access, names: Sequence[str]) -> list[Schedule | None]:
    """Schedules by their names."""
    _, found = await see(access, names)
    return [found[name].schedule if name in found else None for name in names]


async def all_schedules(access: Access) -> list[Schedule]:
    """Every one, by name; not one picture of all."""
    _, found = await see(access, await all_names(access))
    return [found[name].schedule for name in sorted(found)]


async def all_names(access: Access) -> list[str]:
    """In no order; none twice."""
    names: dict[str, None] = {}
    cursor = b"0"
    while True:
        cursor, pairs = await access.command("HSCAN", "standings", cursor, "COUNT", MOST_SEEN)
        names |= dict.fromkeys(name.decode() for name in pairs[::2])
        if cursor == b"0":
            return list(names)


async def due(access: Access, limit: int) -> DueSchedules:
    """By an index that holds only what may come, a portion at a time."""
    found: list[Schedule] = []
    more = True
    while more and len(found) < limit:
        request = min(MOST_SEEN, limit - len(found)), len(found)
        now, first, more, *rows = await access.office("due_schedules", request)
        found += map(_scheduled, rows[::3], rows[1::3], rows[2::3])
    return DueSchedules(now, tuple(found), int(first) - now if first and not found else None)


async def next_tick(access: Access, name: str | None) -> Micros | None:
    """When a schedule comes next; None: never, it is paused, or there is none."""
    standing = None if name is None else await access.command("HGET", "standings", name)
    return None if standing is None else tick_of(standing_schedule(name or "", standing))


def _scheduled(name: bytes, standing: bytes, settings: bytes) -> Schedule:
    return standing_schedule(name.decode(), standing, settings)
