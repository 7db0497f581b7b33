"""The overview: depth, throughput, failures, waiting times, workers, and what is wrong now."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from windlass.core.stats.recent_stats import recent_stats
from windlass.core.stats.timeline import Point, Timeline
from windlass.core.status import Status
from windlass.server.api.live_workers import list_workers
from windlass.server.api.queues import list_queues
from windlass.server.api.schedules import list_schedules
from windlass.server.api.stats import StatsQuery
from windlass.server.dashboard.figures.plots import Line, Plot, Window, bars, lines
from windlass.server.dashboard.numbers import read_stats
from windlass.server.dashboard.page import Page, Reply, Shown, View
from windlass.server.dashboard.render import number, span
from windlass.server.dashboard.troubles import State, troubles
from windlass.store.records import WorkerInfo


class Range(msgspec.Struct, frozen=True):
    """A length of time to plot."""

    name: str
    seconds: float
    points: int


RANGES = (Range("hour", 3600, 60), Range("day", 86_400, 24), Range("week", 604_800, 56))
RECENT_SECONDS = 300.0


async def show_overview(view: View) -> Reply:
    """The state of everything that the caller may see."""
    chosen = next((each for each in RANGES if each.name == view.asked("range")), RANGES[0])
    queue = _queue_of(view)
    query = StatsQuery(
        since=chosen.seconds,
        points=chosen.points,
        by="all",
        times="wait",
        recent=None if queue else RECENT_SECONDS,
        recent_by="type",
        queue=queue,
    )
    stats = await read_stats(view, query)
    if queue:  # only the plots are of one queue
        every = await read_stats(view, StatsQuery(recent=RECENT_SECONDS, recent_by="type"))
        stats.recent = every.recent
    workers: list[WorkerInfo] = (await view.ask(list_workers)).body.workers
    queues = (await view.ask(list_queues)).body.queues
    assert stats.recent is not None
    state = State(
        now=datetime.now(UTC),
        queues=queues,
        oldest=stats.oldest,
        workers=workers,
        schedules=(await view.ask(list_schedules)).body.schedules,
        dead=stats.totals.get(Status.DEAD, 0),
        recent=stats.recent,
        parked_types=await _parked_types(view),
    )
    context = {
        "ranges": [each.name for each in RANGES],
        "range": chosen.name,
        "queue": queue,
        "queue_names": sorted(stats.queues),
        "totals": stats.totals,
        "live": sum(stats.totals[each] for each in ("scheduled", "blocked", "pending", "running", "failed")),
        "recent": recent_stats(stats.recent),
        "oldest": max(stats.oldest.items(), key=lambda each: each[1], default=None),
        "workers": workers,
        "slots": sum(each.slots for each in workers),
        "busy": sum(each.busy for each in workers),
        "troubles": troubles(state),
        "now": state.now,
        "plots": []
        if stats.timeline is None
        else _plots(stats.timeline, chosen, sum(each.slots for each in workers)),
        "nothing": not queues and not workers,
    }
    return Shown("overview.html", "Overview", context)


async def _parked_types(view: View) -> list[str]:
    """A type does not say in which queue its jobs are: a limited token sees none."""
    if view.caller.rights.is_limited:
        return []
    return await (await view.app._ready()).jobs.parked_types()


def _queue_of(view: View) -> str | None:
    """The queue to plot: samples are sums, so a token that is limited to queues sees them for one of its own."""
    rights = view.caller.rights
    asked = view.asked("queue") or None
    return asked if asked and rights.covers_queue(asked) else min(rights.queues, default=None)


def _window(timeline: Timeline, chosen: Range) -> Window:
    step = timedelta(seconds=timeline.seconds)
    starts = [timeline.since + step * i for i in range(len(timeline.all.points))]
    often, sampled = "minute" if chosen.name == "hour" else "hour", any(timeline.all.points)
    return Window(starts, timeline.until, chosen.name, often, sampled)


def _attempts(timeline: Timeline, window: Window, points: Sequence[Point | None]) -> Plot:
    series = [
        Line("completed", [_of(p, "completed") for p in points], "completed"),
        Line("failed", [_of(p, "failures") for p in points], "dead"),
    ]
    return bars(f"Attempts per {span(timeline.seconds)}", window, series, number)


def _times(title: str, what: str, window: Window, points: Sequence[Point | None]) -> Plot:
    series = [Line(name, [_time(p, what, name) for p in points], name) for name in ("p99", "p95", "p50")]
    return lines(title, window, series, span)


def plots_of_type(timeline: Timeline, chosen: Range) -> list[Plot]:
    """Attempts, run times and waiting times of a timeline that is of one type."""
    window, points = _window(timeline, chosen), timeline.all.points
    return [
        _attempts(timeline, window, points),
        _times("Run time", "run", window, points),
        _times("Waiting time", "wait", window, points),
    ]


def _plots(timeline: Timeline, chosen: Range, slots: int) -> list[Plot]:
    window, points = _window(timeline, chosen), timeline.all.points
    failures = [Line("failed", [_of(p, "failures") for p in points], "dead")]
    running = [
        Line("most", [_most(p, Status.RUNNING) for p in points], "most"),
        Line("mean", _depth(points, Status.RUNNING), "running"),
    ]
    return [
        _attempts(timeline, window, points),
        bars(f"Failed attempts per {span(timeline.seconds)}", window, failures, number),
        _times("Waiting time", "wait", window, points),
        bars(
            "Jobs by status",
            window,
            [
                Line(str(each), _depth(points, each), str(each))
                for each in (Status.RUNNING, Status.PENDING, Status.FAILED, Status.BLOCKED, Status.SCHEDULED)
            ],
            number,
        ),
        lines(f"Running jobs, {slots:,} {'slot' if slots == 1 else 'slots'} now", window, running, number),
        lines("Oldest pending job", window, [Line("oldest", [_of(p, "oldest") for p in points], "pending")], span),
    ]


def _of(point: Point | None, name: str) -> float | None:
    return None if point is None else getattr(point, name)


def _time(point: Point | None, what: str, name: str) -> float | None:
    return None if point is None else getattr(getattr(point, what), name)


def _most(point: Point | None, status: Status) -> float | None:
    return None if point is None or point.max_jobs is None else point.max_jobs.get(status, 0)


def _depth(points: Sequence[Point | None], status: Status) -> list[float | None]:
    return [None if p is None or p.jobs is None else round(p.jobs.get(status, 0.0), 1) for p in points]


PAGES = (Page(path="/", handler=show_overview),)
