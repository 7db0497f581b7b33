"""Types: rate, share of failures and run times of each; one type over time, and its arguments."""

import msgspec

from windlass.core.own_types import OWN_TYPES
from windlass.core.stats.meter import Histogram, Recent
from windlass.core.stats.recent_stats import RecentStats, by_type, recent_stats
from windlass.core.stats.timeline import Timeline
from windlass.core.text import cut
from windlass.errors import InvalidInput
from windlass.server.api.live_workers import list_types, list_workers
from windlass.server.api.stats import StatsQuery
from windlass.server.dashboard.figures.plots import Plot
from windlass.server.dashboard.figures.shapes import Columns, columns
from windlass.server.dashboard.forms.fields import Field, fields_of, known_task
from windlass.server.dashboard.numbers import count, read_stats
from windlass.server.dashboard.overview import RANGES, Range, plots_of_type
from windlass.server.dashboard.page import Page, Reply, Shown, View, paged
from windlass.server.problem import Refused

RECENT_SECONDS = 300.0
COLUMN_SECONDS = (3600.0, 900.0)
"""How far back the columns of the list reach: the first length that is not too much to read."""
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
    workers = {**known, **await _workers_of_own(view)}
    lately = await _summed(view, RECENT_SECONDS)
    recent, seconds = by_type(lately), _column_seconds(lately)
    longer = lately if seconds == RECENT_SECONDS else await _summed(view, seconds)
    parts = longer.by(lambda meter: meter.type)
    names = sorted(
        (name for name in known.keys() | recent.keys() if name), key=lambda name: (-_ended(recent.get(name)), name)
    )
    shown, pages = paged(view, "/types", names)
    rows = [
        TypeRow(
            type=name,
            workers=workers.get(name, 0),
            recent=recent.get(name, RecentStats()),
            times=columns(_run_times(parts.get(name))),
        )
        for name in shown
    ]
    context = {"types": rows, "count": len(names), "minutes": round(seconds / 60), **pages}
    return Shown("types.html", "Types", context)


async def _workers_of_own(view: View) -> dict[str, int]:
    """Every worker runs the jobs of flows and webhooks, and names their types nowhere."""
    return dict.fromkeys(OWN_TYPES, len((await view.ask(list_workers)).body.workers))


def _column_seconds(recent: Recent) -> float:
    """How many seconds the columns cover: an hour, or less if there are very many meters."""
    each_second = (recent.added_up or len(recent.meters)) / RECENT_SECONDS
    return next((each for each in COLUMN_SECONDS if each * each_second <= MAX_METERS), RECENT_SECONDS)


async def _summed(view: View, seconds: float) -> Recent:
    found = (await read_stats(view, StatsQuery(recent=seconds, recent_by="type"))).recent
    assert found is not None
    return found


def _ended(recent: RecentStats | None) -> int:
    return 0 if recent is None else recent.completed + recent.failures


def _run_times(recent: Recent | None) -> Histogram:
    return recent.total().run if recent else Histogram()


async def show_type(view: View) -> Reply:
    """One type: run times, plots, and its arguments."""
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
        "workers": known[name].workers if name in known else (await _workers_of_own(view)).get(name, 0),
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
    """Without samples for a limited token: they are sums over all queues."""
    if view.caller.rights.is_limited:
        return StatsQuery(recent=HOUR_SECONDS, type=name)
    return StatsQuery(recent=HOUR_SECONDS, since=chosen.seconds, points=chosen.points, by="all", type=name)


def _plots(timeline: Timeline | None, chosen: Range) -> list[Plot]:
    return [] if timeline is None else plots_of_type(timeline, chosen)


def _arguments(view: View, name: str) -> list[Field] | None:
    """The arguments of the task; None if the server does not know it, or the token does not cover it."""
    task = known_task(view, name)
    if task is None:
        return None
    signature = task.signature
    return fields_of(signature.json_schema(), signature.defaults)


PAGES = (Page(path="/types", handler=show_types), Page(path="/types/{name}", handler=show_type))
