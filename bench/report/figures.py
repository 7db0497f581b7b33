"""What a measurement says: figures of every round, what they are compared with, and the target."""

import statistics
from collections.abc import Sequence

import msgspec


class Target(msgspec.Struct, frozen=True):
    """What is to be reached, by the ratio if there is a denominator, else by the figure itself."""

    bound: float
    at_least: bool = True

    def met(self, value: float) -> bool:
        """Whether a value is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound


class Base(msgspec.Struct, frozen=True):
    """What a figure is divided by: the bare loop, a peer, or another figure of ours."""

    name: str
    rounds: list[float] = []
    """As many as the figure has, taken alternately with it; empty: it was not run."""
    skip_reason: str | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: the median of its rounds, and beside it what it is compared with."""

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
        """The median of the ratios round by round: what slows the machine down for a while slows both.

        None if there is nothing to divide by: it was not run, or took too little to be seen.
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
    """How many of them, from the first on, are ours; the others are what they are compared with."""


class Line(msgspec.Struct, frozen=True):
    """One line of a chart."""

    name: str
    points: list[tuple[float, float]]


class Lines(msgspec.Struct, frozen=True, tag=True):
    """A chart of how something goes; its y axis begins at zero."""

    title: str
    x: str
    y: str
    lines: list[Line]


Chart = Bars | Lines


class Listing(msgspec.Struct, frozen=True):
    """Lines of text and number that are not figures of their own, such as a profile."""

    title: str
    unit: str
    lines: list[tuple[str, float]]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """What one measurement found, complete in itself."""

    name: str
    title: str
    rows: list[Row]
    charts: list[Chart] = []
    listings: list[Listing] = []
    notes: list[str] = []


def bars(title: str, rows: Sequence[Row]) -> Bars:
    """The rows and their denominators as a chart, each thing once."""
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
