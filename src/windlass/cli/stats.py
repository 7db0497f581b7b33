"""windlass stats: numbers of jobs, recent statistics, and timelines."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.console import Console

from windlass.cli.output.as_json import print_json
from windlass.cli.output.figures import amount, bars, rate, span
from windlass.cli.output.tables import console, plain, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look
from windlass.client.app import App
from windlass.core.moments import DAY, SECOND, parse_duration, show_duration
from windlass.core.names import check_name
from windlass.core.stats.meter import Recent
from windlass.core.stats.recent_stats import DURATION_WINDOW, RecentStats, by_queue, by_type, recent_stats
from windlass.core.stats.samples import HOUR, SAMPLE_RETENTION
from windlass.core.stats.scale import scale as make_scale
from windlass.core.stats.timeline import By, Series, Timeline
from windlass.core.status import Status
from windlass.errors import InvalidOption
from windlass.store.open import redact
from windlass.store.records import Counts

ALWAYS = frozenset({Status.PENDING, Status.RUNNING, Status.COMPLETED, Status.DEAD})
"""Statuses that are shown even if no job has them."""

TIMES: dict[str, Callable[[RecentStats], str]] = {
    "done/s": lambda recent_stats: rate(recent_stats.per_second),
    "wait p50": lambda recent_stats: span(recent_stats.wait.p50),
    "wait p95": lambda recent_stats: span(recent_stats.wait.p95),
    "wait p99": lambda recent_stats: span(recent_stats.wait.p99),
    "run p50": lambda recent_stats: span(recent_stats.run.p50),
    "run p95": lambda recent_stats: span(recent_stats.run.p95),
    "run p99": lambda recent_stats: span(recent_stats.run.p99),
}
"""Shown if anything ran in the last minutes."""
SPARE = ("run p50", "wait p50", "wait p99", "cancelled", "run p99", "run p95", "blocked", "wait p95", "done/s")
"""Columns that are dropped, in this order, if the table is too wide."""

WIDE = 150
"""From this width on there is room for longer bars, and for those of pending jobs."""
OTHERS = "(others)"
TIMELINE_SPARE = (
    "run p50",
    "wait p50",
    "wait p99",
    "run p99",
    "oldest",
    "most pending",
    "run p95",
    "wait p95",
    "done/s",
)
"""Columns that are dropped, in this order, if the table is too wide."""

SinceOption = Annotated[
    str | None, typer.Option(help="Statistics since then: 6h, 7d, 90d; by minute up to 12h, else by hour.")
]
ByOption = Annotated[By | None, typer.Option(help="With --since: a line for each queue or each type.")]
TypeOption = Annotated[str | None, typer.Option("--type", help="With --since: only this type.")]
QueueOption = Annotated[str | None, typer.Option(help="With --since: only this queue.")]


def stats(
    since: SinceOption = None,
    by: ByOption = None,
    queue: QueueOption = None,
    type_: TypeOption = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count jobs by queue and status; show rates, wait times and run times, now or over time."""
    if since is None:
        for name, value in (("--by", by), ("--queue", queue), ("--type", type_)):
            if value is not None:
                raise InvalidOption(name, "needs --since, such as --since 6h")
        _print_now(look(store, app), as_json=as_json)
        return
    micros = parse_duration(since, "--since")
    if not 0 < micros <= SAMPLE_RETENTION[HOUR]:
        raise InvalidOption(
            "--since", f"must be more than 0s and at most {SAMPLE_RETENTION[HOUR] // DAY}d, not {since}"
        )
    length = micros / SECOND
    by = by or ("type" if type_ and not queue else "queue")
    home = look(store, app)
    if as_json:
        counts, points_of_all = home.stats.counts(), home.stats.timeline(length, by=by, queue=queue, type=type_)
        print_json({"queues": counts.queues, "totals": counts.totals, "timeline": points_of_all})
        return
    out = console()
    timeline = home.stats.timeline(length, by=by, queue=queue, type=type_, points=_points(out.width))
    print_timeline(timeline, show_duration(micros), out)


def scale(
    queues: Annotated[str | None, typer.Option(help="mail,images - only these queues.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print one number for autoscalers: running jobs plus pending ones that may start. --json adds both."""
    chosen = tuple(check_name(each.strip(), "--queues") for each in queues.split(",")) if queues is not None else ()
    home = look(store, app)
    found = make_scale(home.stats.counts().queues, home.queues.list(), chosen)
    if as_json:
        print_json(found)
    else:
        typer.echo(found.value)


def _print_now(home: App, *, as_json: bool) -> None:
    counts, recent = home.stats.counts(), home.stats.recent(DURATION_WINDOW / SECOND)
    if as_json:
        lately = {"seconds": DURATION_WINDOW / SECOND, "queues": by_queue(recent), "types": by_type(recent)}
        print_json({"queues": counts.queues, "totals": counts.totals, "recent": lately})
        return
    _print_queues(counts, recent, empty=f"No jobs yet in {redact(home.store)}.")
    if recent.meters:
        typer.echo()
        _print_types(by_type(recent))


def _print_queues(counts: Counts, recent: Recent, *, empty: str) -> None:
    shown = [status for status in Status if counts.totals[status] or status in ALWAYS]
    rows = [[name, *[str(jobs[status]) for status in shown]] for name, jobs in counts.queues.items()]
    paces = by_queue(recent)
    lately = [paces.get(name, RecentStats()) for name in counts.queues]
    if len(rows) > 1:
        rows.append(["all", *[str(counts.totals[status]) for status in shown]])
        lately.append(recent_stats(recent))
    times = list(TIMES) if recent.meters else []
    table = [[*row, *_times(times, each)] for row, each in zip(rows, lately, strict=True)]
    print_table(["queue", *map(str, shown), *times], table, empty=empty, spare=SPARE)


def _print_types(paces: dict[str, RecentStats]) -> None:
    rows = [
        [name, amount(each.completed), amount(each.failures), *_times(list(TIMES), each)]
        for name, each in sorted(paces.items())
    ]
    print_table(["type", "done", "failures", *TIMES], rows, empty="", spare=SPARE)


def _times(names: Sequence[str], each: RecentStats) -> list[str]:
    return [TIMES[name](each) for name in names]


def _points(width: int) -> int:
    """How many bars fit."""
    return 40 if width >= WIDE else 24


def print_timeline(timeline: Timeline, over: str, out: Console) -> None:
    """A table with a row for each queue or type, and one for all; `over` is the length, in words."""
    if timeline.all.whole is None:
        out.print(plain(f"Nothing was sampled in the last {over}: any worker that runs does so, each minute."))
        return
    lines = {name or OTHERS: line for name, line in timeline.series.items()}
    if len(lines) > 1:
        lines["all"] = timeline.all
    waiting = timeline.by == "queue" and out.width >= WIDE
    columns = _columns(timeline)
    rows = [[name, *_figures(timeline, line), *_bars(line, out, waiting=waiting)] for name, line in lines.items()]
    heads = [*(["pending over time"] if waiting else []), "done over time"]
    print_table([timeline.by, *columns, *heads], rows, empty=_nothing(over), spare=TIMELINE_SPARE)
    if rows:
        bar = show_duration(round(timeline.seconds * SECOND))
        times = f"{timeline.since:%Y-%m-%d %H:%M} to {timeline.until:%Y-%m-%d %H:%M} UTC"
        out.print(plain(f"{times}; a bar is {bar}, a blank a gap", "dim"))


def _nothing(over: str) -> str:
    """What ran just now is not sampled yet."""
    return f"Nothing ran in the last {over}, up to the last sample; windlass stats has what runs now."


def _columns(timeline: Timeline) -> list[str]:
    times = [f"{what} {share}" for what in ("wait", "run") for share in ("p50", "p95", "p99")]
    return ["done", "failures", "done/s", *times, *(["most pending", "oldest"] if timeline.by == "queue" else [])]


def _figures(timeline: Timeline, line: Series) -> list[str]:
    whole = line.whole
    if whole is None:
        return ["-" for _ in _columns(timeline)]
    times = [whole.wait.p50, whole.wait.p95, whole.wait.p99, whole.run.p50, whole.run.p95, whole.run.p99]
    most = "-" if whole.max_jobs is None else amount(whole.max_jobs.get("pending", 0))
    counted = [most, span(whole.oldest)] if timeline.by == "queue" else []
    return [amount(whole.completed), amount(whole.failures), rate(whole.per_second), *map(span, times), *counted]


def _bars(line: Series, out: Console, *, waiting: bool) -> list[str]:
    narrow = not (out.encoding or "").lower().startswith("utf")
    done = [None if point is None else point.per_second for point in line.points]
    waits = [None if point is None or point.jobs is None else point.jobs.get("pending", 0) for point in line.points]
    return [bars(values, plain=narrow) for values in ([waits] if waiting else []) + [done]]
