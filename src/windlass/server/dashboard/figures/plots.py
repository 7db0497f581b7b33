"""Plots as SVG, drawn on the server: shapes only, because they are stretched; labels are HTML beside them."""

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec
from markupsafe import Markup

from windlass.server.dashboard.render import number, span

WIDTH, HEIGHT = 600.0, 120.0
Values = Sequence[float | None]
Show = Callable[[float | None], str]
_SPANS = (
    *(part * size for size in (0.001, 0.01, 0.1, 1.0) for part in (1, 2, 5)),
    *(10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 43_200, 86_400),
    *(days * 86_400 for days in (2, 5, 10, 20, 50, 100, 400)),
)


class Line(msgspec.Struct, frozen=True):
    """One series of a plot; None is a gap."""

    name: str
    values: Values
    kind: str
    """The class that gives its colour and dashes."""

    @property
    def last(self) -> float | None:
        """The newest value that is known."""
        return next((each for each in reversed(self.values) if each is not None), None)


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A plot with its labels."""

    title: str
    shapes: Markup
    top: str
    half: str
    """The labels of its upper edge and of the middle."""
    times: tuple[datetime, ...]
    """Where it begins, its middle, and where it ends."""
    step: str
    """How often a sample is made."""
    sampled: bool
    is_line: bool
    legend: tuple[tuple[str, str, str], ...]
    """Name, class and last value of each line."""
    described: str
    """The plot in words."""
    empty: bool


class Window(msgspec.Struct, frozen=True):
    """The times of a plot's points."""

    starts: Sequence[datetime]
    until: datetime
    name: str = "hour"
    step: str = "minute"
    sampled: bool = True
    """Whether there is any sample in it."""


def lines(title: str, window: Window, series: Sequence[Line], show: Show) -> Plot:
    """One line for each series; the first is the topmost in the legend."""
    top = _nice(max((value for each in series for value in each.values if value is not None), default=0.0), show)
    drawn = [_line(each, top) for each in series]
    return _plot(title, window, series, show, top, drawn, is_line=True)


def bars(title: str, window: Window, series: Sequence[Line], show: Show) -> Plot:
    """Stacked bars, the first series at the bottom."""
    sums = [sum(each.values[i] or 0 for each in series) for i in range(len(window.starts))]
    top = _nice(max(sums, default=0.0), show)
    below = [0.0] * len(window.starts)
    drawn = []
    for each in series:
        drawn.append(_stack(each, below, top))
        below = [low + (value or 0) for low, value in zip(below, each.values, strict=True)]
    return _plot(title, window, series, show, top, drawn)


def _plot(
    title: str,
    window: Window,
    series: Sequence[Line],
    show: Show,
    top: float,
    drawn: Sequence[Markup],
    *,
    is_line: bool = False,
) -> Plot:
    grid = [_rule(HEIGHT * part / 4) for part in (1, 2, 3)]
    hovers = [_hover(window.starts, i, series, show) for i in range(len(window.starts))]
    empty = all(value is None for each in series for value in each.values)
    described = ", ".join(f"{each.name} {show(each.last)}" for each in series)
    since = window.starts[0] if window.starts else window.until
    return Plot(
        title=title,
        shapes=Markup("").join([*grid, *drawn, *hovers]),
        top=show(top),
        half="" if show is number and top % 2 else show(top / 2),
        times=(since, since + (window.until - since) / 2, window.until),
        step=window.step,
        sampled=window.sampled,
        is_line=is_line,
        legend=tuple((each.name, each.kind, show(each.last)) for each in series),
        described=f"{title} in the last {window.name}; last: {described}",
        empty=empty,
    )


def _rule(y: float) -> Markup:
    return Markup('<path class="grid" d="M0 {0}H{1}"/>').format(f"{y:.1f}", f"{WIDTH:.0f}")


def _line(line: Line, top: float) -> Markup:
    step = WIDTH / max(1, len(line.values))
    path, pen = [], "M"
    for i, value in enumerate(line.values):
        if value is None:
            pen = "M"
            continue
        x, y = step * (i + 0.5), HEIGHT * (1 - min(value, top) / top)
        # A point between two gaps is invisible without a short stroke.
        path.append(f"{pen}{x:.1f} {y:.1f}" + (f"h{step / 4:.1f}" if pen == "M" else ""))
        pen = "L"
    return Markup('<path class="line {}" d="{}"/>').format(line.kind, "".join(path))


def _stack(line: Line, below: Sequence[float], top: float) -> Markup:
    step = WIDTH / max(1, len(line.values))
    path = []
    for i, value in enumerate(line.values):
        if value:
            low, height = HEIGHT * (1 - below[i] / top), HEIGHT * value / top
            path.append(f"M{step * i + step * 0.1:.1f} {low:.1f}v{-height:.1f}h{step * 0.8:.1f}v{height:.1f}z")
    return Markup('<path class="bar {}" d="{}"/>').format(line.kind, "".join(path))


def _hover(starts: Sequence[datetime], i: int, series: Sequence[Line], show: Show) -> Markup:
    """A column that shows its values under the pointer."""
    step = WIDTH / max(1, len(starts))
    at = starts[i].astimezone(UTC)
    described = ", ".join(f"{each.name} {show(each.values[i])}" for each in series)
    return Markup(
        '<rect class="hover" x="{}" y="0" width="{}" height="{}"><title data-at="{}">{}: {}</title></rect>'
    ).format(
        *(f"{step * i:.1f}", f"{step:.1f}", f"{HEIGHT:.0f}"),
        *(f"{at:%Y-%m-%dT%H:%MZ}", f"{at:%Y-%m-%d %H:%M UTC}", described),
    )


def _nice(largest: float, show: Show) -> float:
    """A round number that is not below the largest value: of seconds, one that reads as a length of time."""
    if largest <= 0:
        return 1.0
    if show is span:
        return next((each for each in _SPANS if each >= largest), largest)
    size = 10.0 ** math.floor(math.log10(largest))
    return next((size * part for part in (1, 1.5, 2, 3, 4, 5, 6, 8) if size * part >= largest), size * 10)
