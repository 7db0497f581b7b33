"""Workers and types: what is alive, how busy it is, and how each type runs."""

import msgspec

from windlass.core.stats.recent_stats import RecentStats, by_type
from windlass.server.dashboard.numbers import read_stats
from windlass.server.dashboard.page import Page, Reply, Shown, View
from windlass.server.stats import StatsQuery, list_types, list_workers

RECENT_SECONDS = 3600.0


class TypeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A type: the workers that know it, and how it ran recently."""

    type: str
    workers: int
    recent: RecentStats


async def show_workers(view: View) -> Reply:
    """The live workers."""
    found = (await view.ask(list_workers)).body.workers
    context = {
        "workers": sorted(found, key=lambda each: (each.host, each.id)),
        "slots": sum(each.slots for each in found),
        "busy": sum(each.busy for each in found),
    }
    return Shown("workers.html", "Workers", context)


async def show_types(view: View) -> Reply:
    """Types with their rates and times, the busiest first."""
    known = {each.type: each.workers for each in (await view.ask(list_types)).body.types}
    stats = await read_stats(view, StatsQuery(recent=RECENT_SECONDS))
    assert stats.recent is not None
    recent = by_type(stats.recent)
    rows = [
        TypeRow(type=name, workers=known.get(name, 0), recent=recent.get(name, RecentStats()))
        for name in sorted(known.keys() | recent.keys())
        if name
    ]
    rows.sort(key=lambda each: -(each.recent.completed + each.recent.failures))
    return Shown("types.html", "Types", {"types": rows})


PAGES = (Page(path="/workers", handler=show_workers), Page(path="/types", handler=show_types))
