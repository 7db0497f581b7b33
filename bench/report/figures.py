"""The result of a measurement: the figures of every round, their base, and the target."""

import statistics
from collections.abc import Sequence

import msgspec


class Target(msgspec.Struct, frozen=True):
    """A target for the ratio if there is a denominator, else for the figure itself."""

    bound: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        """Whether a value reaches the target."""
        return value >= self.bound if self.at_least else value <= self.bound


class Base(msgspec.Struct, frozen=True):
    """A denominator: the bare loop, a peer, or another figure of Windlass."""

    name: str
    rounds: list[float] = []
    """Its value in each round, measured alternately with the figure; empty: it was not run."""
    skip_reason: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: the median of its rounds, and its bases."""

    name: str
    unit: str
    rounds: list[float]
    base: Base | None = None
    target: Target | None = None
    note: str = ""

    @property
    def value(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rounds)

    @property
    def base_value(self) -> float | None:
        """The median of the denominator's rounds, if it was run."""
        return statistics.median(self.base.rounds) if self.base and self.base.rounds else None

    @property
    def ratio(self) -> float | None:
        """The median of the ratios of each round: a slow machine slows both. None if the base was not run, or is
        zero.
        """
        if self.base is None or not self.base.rounds or min(self.base.rounds) <= 0:
            return None
        return statistics.median(ours / theirs for ours, theirs in zip(self.rounds, self.base.rounds, strict=True))

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None if there is none, or nothing to compare with."""
        judged = self.value if self.base is None else self.ratio
        return None if self.target is None or judged is None else self.target.met(judged)


class Bars(msgspec.Struct, frozen=True, tag=True):
    """A chart of a few figures side by side."""

    title: str
    unit: str
    bars: list[tuple[str, float]]
    ours: int
    """The number of leading bars that are Windlass's; the others are bases."""


class Line(msgspec.Struct, frozen=True):
    """One line of a chart."""

    name: str
    points: list[tuple[float, float]]


class Lines(msgspec.Struct, frozen=True, tag=True):
    """A chart of values over time or size; its y axis begins at zero."""

    title: str
    x: str
    y: str
    lines: list[Line]


Chart = Bars | Lines


class Listing(msgspec.Struct, frozen=True):
    """Lines of text and number without rounds, such as a profile."""

    title: str
    unit: str
    lines: list[tuple[str, float]]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one measurement."""

    name: str
    title: str
    rows: list[Row]
    charts: list[Chart] = []
    listings: list[Listing] = []
    notes: list[str] = []


def bars(title: str, rows: Sequence[Row]) -> Bars:
    """The rows and their denominators as a chart, each once."""
    seen = {row.name: row.value for row in rows}
    ours = len(seen)
    for row in rows:
        if row.base is not None and row.base_value is not None:
            seen.setdefault(row.base.name, row.base_value)
    return Bars(title, rows[0].unit, list(seen.items()), ours)


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that this percentage of all values does not exceed."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]
