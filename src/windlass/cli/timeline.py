"""A timeline as a table: totals, and a row of bars."""

from rich.console import Console

from windlass.cli.figures import amount, bars, rate, span
from windlass.cli.output import plain, print_table
from windlass.core.moments import SECOND, show_duration
from windlass.core.stats.timeline import Series, Timeline

WIDE = 150
"""From this width on there is room for longer bars, and for those of pending jobs."""
OTHERS = "(others)"
SPARE = ("run p50", "wait p50", "wait p99", "run p99", "oldest", "most pending", "run p95", "wait p95", "done/s")
"""Columns that are dropped, in this order, if the table is too wide."""


def points(width: int) -> int:
    """How many bars fit."""
    return 40 if width >= WIDE else 24


def print_timeline(course: Timeline, over: str, out: Console) -> None:
    """A table with a row for each queue or type, and one for all; `over` is the length, in words."""
    if course.all.whole is None:
        out.print(plain(f"Nothing was sampled in the last {over}: any worker that runs does so, each minute."))
        return
    lines = {name or OTHERS: line for name, line in course.series.items()}
    if len(lines) > 1:
        lines["all"] = course.all
    waiting = course.by == "queue" and out.width >= WIDE
    columns = _columns(course)
    rows = [[name, *_figures(course, line), *_bars(line, out, waiting=waiting)] for name, line in lines.items()]
    heads = [*(["pending over time"] if waiting else []), "done over time"]
    print_table([course.by, *columns, *heads], rows, empty=_nothing(over), spare=SPARE)
    if rows:
        bar = show_duration(round(course.seconds * SECOND))
        times = f"{course.since:%Y-%m-%d %H:%M} to {course.until:%Y-%m-%d %H:%M} UTC"
        out.print(plain(f"{times}; a bar is {bar}, a blank a gap", "dim"))


def _nothing(over: str) -> str:
    """What ran just now is not sampled yet."""
    return f"Nothing ran in the last {over}, up to the last sample; windlass stats has what runs now."


def _columns(course: Timeline) -> list[str]:
    times = [f"{what} {share}" for what in ("wait", "run") for share in ("p50", "p95", "p99")]
    return ["done", "failures", "done/s", *times, *(["most pending", "oldest"] if course.by == "queue" else [])]


def _figures(course: Timeline, line: Series) -> list[str]:
    whole = line.whole
    if whole is None:
        return ["-" for _ in _columns(course)]
    times = [whole.wait.p50, whole.wait.p95, whole.wait.p99, whole.run.p50, whole.run.p95, whole.run.p99]
    most = "-" if whole.max_jobs is None else amount(whole.max_jobs.get("pending", 0))
    counted = [most, span(whole.oldest)] if course.by == "queue" else []
    return [amount(whole.completed), amount(whole.failures), rate(whole.per_second), *map(span, times), *counted]


def _bars(line: Series, out: Console, *, waiting: bool) -> list[str]:
    narrow = not (out.encoding or "").lower().startswith("utf")
    done = [None if point is None else point.per_second for point in line.points]
    waits = [None if point is None or point.jobs is None else point.jobs.get("pending", 0) for point in line.points]
    return [bars(course, plain=narrow) for course in ([waits] if waiting else []) + [done]]
