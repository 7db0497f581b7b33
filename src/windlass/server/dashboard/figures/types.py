"""Types: rate, share of failures and run times of each; one type over time, and its arguments."""

import msgspec

from windlass.core.stats.meter import Histogram, Recent
from windlass.core.stats.recent_stats import RecentStats, by_type, recent_stats
from windlass.core.stats.timeline import Timeline
from windlass.core.text import cut
from windlass.errors import InvalidInput
from windlass.server.dashboard.figures.shapes import Columns, columns
from windlass.server.dashboard.forms.fields import Field, fields_of
from windlass.server.dashboard.numbers import count, read_stats
from windlass.server.dashboard.overview import RANGES, Range, plots_of_type
from windlass.server.dashboard.page import Page, Reply, Shown, View, paged
from windlass.server.dashboard.plots import Plot
from windlass.server.problem import Refused
from windlass.server.stats import StatsQuery, list_types

RECENT_SECONDS = 300.0
COLUMN_SECONDS = (3600.0, 900.0)
"""How far the columns of the list reach, unless that is too much to read for a page."""
HOUR_SECONDS = COLUMN_SECONDS[0]
MAX_METERS = 20_000
"""Meters that a page reads: about a third of a second."""


class TypeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A type: the workers that know it, and how it ran recently."""

    type: str
    workers: int
    recent: RecentStats
    times: Columns | None


async def show_types(view: View) -> Reply:
    """Types with their rates and times, the busiest first."""
    known = {each.type: each.workers for each in (await view.ask(list_types)).body.types}
    stats = await read_stats(view, StatsQuery(recent=RECENT_SECONDS))
    assert stats.recent is not None
    recent = by_type(stats.recent)
    seconds, longer = await _longer(view, stats.recent)
    parts = longer.by(lambda meter: meter.type)
    names = sorted(
        (name for name in known.keys() | recent.keys() if name), key=lambda name: (-_ended(recent.get(name)), name)
    )
    shown, pages = paged(view, "/types", names)
    rows = [
        TypeRow(
            type=name,
            workers=known.get(name, 0),
            recent=recent.get(name, RecentStats()),
            times=columns(_run_times(parts.get(name))),
        )
        for name in shown
    ]
    context = {"types": rows, "count": len(names), "minutes": round(seconds / 60), **pages}
    return Shown("types.html", "Types", context)


async def _longer(view: View, recent: Recent) -> tuple[float, Recent]:
    """The meters for the columns, and how many seconds they are of: an hour, or less where there are very many."""
    each_second = len(recent.meters) / RECENT_SECONDS
    seconds = next((each for each in COLUMN_SECONDS if each * each_second <= MAX_METERS), RECENT_SECONDS)
    if seconds == RECENT_SECONDS or view.caller.rights.types:
        return seconds, recent
    found = (await read_stats(view, StatsQuery(recent=seconds))).recent
    assert found is not None
    return seconds, found


def _ended(recent: RecentStats | None) -> int:
    return 0 if recent is None else recent.completed + recent.failures


def _run_times(recent: Recent | None) -> Histogram:
    return recent.total().run if recent else Histogram()


async def show_type(view: View) -> Reply:
    """One type: run times, how it ran over time, and what it takes."""
    name = view.path["name"]
    known = {each.type: each for each in (await view.ask(list_types)).body.types}
    chosen = next((each for each in RANGES if each.name == view.asked("range")), RANGES[0])
    stats = await read_stats(view, _query(view, chosen, name))
    assert stats.recent is not None
    own = stats.recent
    if name not in known and not own.meters and not await _has_jobs(view, name):
        raise Refused(404, "not_found", f"no worker, job or app here knows the type {cut(name, 80)!r}")
    context = {
        "type": name,
        "workers": known[name].workers if name in known else 0,
        "recent": recent_stats(own),
        "times": columns(own.total().run),
        "waits": columns(own.total().wait),
        "arguments": _arguments(view, name),
        "ranges": [each.name for each in RANGES],
        "range": chosen.name,
        "plots": _plots(stats.timeline, chosen),
    }
    return Shown("type.html", f"Type {cut(name, 80)}", context)


async def _has_jobs(view: View, name: str) -> bool:
    try:
        return bool((await count(view, {"type": name}, 1)).count)
    except InvalidInput:
        return False  # no type has this name


def _query(view: View, chosen: Range, name: str) -> StatsQuery:
    """Samples are sums over all queues: a limited token sees none."""
    if view.caller.rights.is_limited:
        return StatsQuery(recent=HOUR_SECONDS, type=name)
    return StatsQuery(recent=HOUR_SECONDS, since=chosen.seconds, points=chosen.points, by="all", type=name)


def _plots(timeline: Timeline | None, chosen: Range) -> list[Plot]:
    return [] if timeline is None else plots_of_type(timeline, chosen)


def _arguments(view: View, name: str) -> list[Field] | None:
    """What the task takes; None if the server does not know it."""
    if name not in view.app.registry or not view.caller.rights.covers_type(name):
        return None
    signature = view.app.registry.get(name).signature
    return fields_of(signature.json_schema(), signature.defaults)


PAGES = (Page(path="/types", handler=show_types), Page(path="/types/{name}", handler=show_type))
