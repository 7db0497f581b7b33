"""A course as a table: what came of it all, and a row of bars for how it went."""

from rich.console import Console

from windlass.cli.figures import amount, bars, rate, span
from windlass.cli.output import plain, print_table
from windlass.core.course import Course, Line
from windlass.core.moments import SECOND, show_duration

WIDE = 150
"""From here on there is room for the longer bars, and for those of what waits."""
OTHERS = "(others)"
SPARE = ("run p50", "wait p50", "wait p99", "run p99", "oldest", "most pending", "run p95", "wait p95", "done/s")
"""Columns that go, in this order, where there is no room for all of them."""


def points(width: int) -> int:
    """How many bars fit beside the figures."""
    return 40 if width >= WIDE else 24


def print_course(course: Course, over: str, out: Console) -> None:
    """A table with a line for each queue or type, and one for all; `over` how long, in words."""
    if course.all.whole is None:
        out.print(plain(f"Nothing was sampled in the last {over}: any worker that runs does so, each minute."))
        return
    lines = {name or OTHERS: line for name, line in course.lines.items()}
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
    """What ran just now is not in it yet."""
    return f"Nothing ran in the last {over}, up to the last sample; windlass stats has what runs now."


def _columns(course: Course) -> list[str]:
    times = [f"{what} {share}" for what in ("wait", "run") for share in ("p50", "p95", "p99")]
    return ["done", "failures", "done/s", *times, *(["most pending", "oldest"] if course.by == "queue" else [])]


def _figures(course: Course, line: Line) -> list[str]:
    whole = line.whole
    if whole is None:
        return ["-" for _ in _columns(course)]
    times = [whole.wait.p50, whole.wait.p95, whole.wait.p99, whole.run.p50, whole.run.p95, whole.run.p99]
    most = "-" if whole.most is None else amount(whole.most.get("pending", 0))
    counted = [most, span(whole.oldest)] if course.by == "queue" else []
    return [amount(whole.completed), amount(whole.failures), rate(whole.per_second), *map(span, times), *counted]


def _bars(line: Line, out: Console, *, waiting: bool) -> list[str]:
    narrow = not (out.encoding or "").lower().startswith("utf")
    done = [None if point is None else point.per_second for point in line.points]
    waits = [None if point is None or point.jobs is None else point.jobs.get("pending", 0) for point in line.points]
    return [bars(course, plain=narrow) for course in ([waits] if waiting else []) + [done]]
