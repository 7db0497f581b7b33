"""Small figures: the run times of a type as columns, the last hour of a queue as a line."""

from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from windlass.core.moments import SECOND
from windlass.core.stats.meter import Histogram, middle
from windlass.server.dashboard.render import number, span

EDGES = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
    *(60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
"""Upper ends of the columns, in seconds; the last column is what took longer."""
MIN_COLUMNS = 8
WIDTH, HEIGHT = 210.0, 40.0


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """A histogram as a figure, and in words."""

    shapes: Markup
    described: str
    count: int
    first: str
    last: str
    """The ends of the columns that are drawn."""


def column_counts(times: Histogram) -> list[int]:
    """How many of the times lie in each column."""
    found = [0] * (len(EDGES) + 1)
    for bin_number, count in times.bins.items():
        seconds = middle(bin_number) / SECOND
        found[next((i for i, edge in enumerate(EDGES) if seconds <= edge), len(EDGES))] += count
    return found


def columns(times: Histogram) -> Columns | None:
    """The columns from the first to the last that is not empty, and some around them; None without a time."""
    counts = column_counts(times)
    used = [i for i, count in enumerate(counts) if count]
    if not used:
        return None
    first, last = _around(used[0], used[-1])
    shown = counts[first : last + 1]
    step = WIDTH / len(shown)
    drawn = [_column(i, count, max(shown), step, _between(first + i)) for i, count in enumerate(shown)]
    most = max(range(len(counts)), key=counts.__getitem__)
    return Columns(
        shapes=Markup("").join(drawn),
        described=f"{number(sum(counts))} {'attempt' if sum(counts) == 1 else 'attempts'}, most {_between(most)}",
        count=sum(counts),
        first=span(EDGES[first - 1]) if first else "0s",
        last=f"over {span(EDGES[-1])}" if last == len(EDGES) else span(EDGES[last]),
    )


def _around(first: int, last: int) -> tuple[int, int]:
    """At least MIN_COLUMNS columns, so that they can be compared by eye."""
    while last - first + 1 < MIN_COLUMNS:
        first, last = max(0, first - 1), min(len(EDGES), last + 1)
    return first, last


def _between(i: int) -> str:
    if i == len(EDGES):
        return f"over {span(EDGES[-1])}"
    return f"{span(EDGES[i - 1])} to {span(EDGES[i])}" if i else f"up to {span(EDGES[0])}"


def _column(i: int, count: int, largest: int, step: float, between: str) -> Markup:
    height = max(1.5, HEIGHT * count / largest) if count else 0.0
    return Markup(
        '<rect class="bar running" x="{}" y="{}" width="{}" height="{}"><title>{}: {}</title></rect>'
    ).format(
        f"{step * i:.1f}", f"{HEIGHT - height:.1f}", f"{step * 0.86:.1f}", f"{height:.1f}", between, number(count)
    )


def sparkline(values: Sequence[float | None], what: str) -> Markup:
    """A line of values, stretched to the largest of them, and in words; "" without a value."""
    known = [each for each in values if each is not None]
    if not known:
        return Markup("")
    top = max(known) or 1.0
    step, path, pen = 100 / max(1, len(values) - 1), [], "M"
    for i, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        path.append(f"{pen}{step * i:.0f} {19 - 18 * value / top:.0f}")
        pen = "L"
    described = f"{what}: at most {number(max(known))}, last {number(known[-1])}"
    return Markup(
        '<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" role="img" aria-label="{0}">'
        '<title>{0}</title><path class="line" d="{1}"/></svg>'
    ).format(described, "".join(path))
