"""Meters: what happened to the jobs of one type in one queue during one interval, and how long it took.

Statistics, not guarantees: they are added up in batches, and a lost or repeated batch is tolerated.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Literal, TypeVar

import msgspec

from windlass.core.moments import SECOND, Micros

K = TypeVar("K")
SumBy = Literal["queue", "type"]
"""The fields by which meters are summed."""
Bins = dict[int, int]

INTERVAL: Micros = 10 * SECOND
"""The length of an interval: short enough for a live view, long enough that rows stay few at any load."""
METER_RETENTION: Micros = 3600 * SECOND
"""How long intervals are kept: at most 360 rows for each type in each queue."""
RATE_WINDOW: Micros = 20 * SECOND
"""Two or three intervals: steady enough to read, fresh enough to act on."""

_EXACT = 16


def bin_of(value: Micros) -> int:
    """The number of the bin that holds a value: exact below 16, then eight bins for each doubling.

    Integers only, so that every store and language computes the same. The middle of a bin is within a sixteenth of
    any value in it.
    """
    if value >= _EXACT:
        shift = value.bit_length() - 4
        return (shift << 3) + (value >> shift)
    return value if value > 0 else 0


def middle(number: int) -> float:
    """The middle value of a bin."""
    if number < _EXACT:
        return float(number)
    shift = (number >> 3) - 1
    low = ((number & 7) + 8) << shift
    return low + ((1 << shift) - 1) / 2


class Histogram(msgspec.Struct, frozen=True):
    """Counts of values by bin; empty bins are absent."""

    bins: Bins = {}

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.bins.values())

    def quantile(self, share: float) -> float | None:
        """The value below which this share of them is, to a sixteenth; None if empty."""
        wanted = min(max(1, math.ceil(share * self.count)), self.count)
        for number in sorted(self.bins):
            wanted -= self.bins[number]
            if wanted <= 0:
                return middle(number)
        return None

    def merge(self, other: "Histogram") -> "Histogram":
        """The sum of both; merging is associative and commutative."""
        if not (self.bins and other.bins):
            return self if self.bins else other
        return merge((self.bins, other.bins))


def histogram(values: Iterable[Micros]) -> Histogram:
    bins: Bins = {}
    for number in map(bin_of, values):
        bins[number] = bins.get(number, 0) + 1
    return Histogram(bins)


def merge(histograms: Iterable[Bins]) -> Histogram:
    """The sum of all."""
    added: Bins = defaultdict(int)
    for each in histograms:
        for number, held in each.items():
            added[number] += held
    return Histogram(dict(added))


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of one type in one queue that ended in one interval; each is counted under one outcome.

    Requeued attempts are not counted.
    """

    queue: str
    type: str
    interval_start: Micros = 0
    """When the interval began, by the store's clock; the store fills it in."""
    completed: int = 0
    failed: int = 0
    """Attempts that failed and are tried again."""
    dead: int = 0
    cancelled: int = 0
    snoozed: int = 0
    crashed: int = 0
    """Attempts whose process ended; their jobs are tried again."""
    wait: Histogram = Histogram()
    """Microseconds from when an attempt was due to its start."""
    run: Histogram = Histogram()
    """Microseconds in the handler."""

    @property
    def ended(self) -> int:
        """All attempts that ended."""
        return self.completed + self.failed + self.dead + self.cancelled + self.snoozed + self.crashed

    @property
    def bad(self) -> int:
        """Attempts that failed, died or crashed."""
        return self.failed + self.dead + self.crashed

    def add(self, other: "Meter") -> "Meter":
        """The sum of both, with the queue, type and interval of this one."""
        counted = zip(COUNTERS, map(int.__add__, _counters(self), _counters(other)), strict=True)
        return msgspec.structs.replace(
            self, wait=self.wait.merge(other.wait), run=self.run.merge(other.run), **dict(counted)
        )


COUNTERS = ("completed", "failed", "dead", "cancelled", "snoozed", "crashed")
"""The counters of a meter, each named after an outcome."""
_counters: Callable[[Meter], tuple[int, ...]] = attrgetter(*COUNTERS)


class Recent(msgspec.Struct, frozen=True):
    """The meters of recent intervals, and the store's time when they were read."""

    now: Micros
    meters: tuple[Meter, ...]
    added_up: int = 0
    """The number of meters in these sums; 0 if these are no sums."""

    def since(self, length: Micros) -> "Recent":
        """Only the intervals that overlap the last `length`."""
        first = interval_of(self.now - length)
        return Recent(self.now, tuple(each for each in self.meters if each.interval_start >= first))

    def rate(self, length: Micros) -> float:
        """Completed attempts per second over the intervals that overlap the last `length`."""
        spanned = self.now - interval_of(self.now - length)
        return sum(each.completed for each in self.since(length).meters) * SECOND / spanned

    def by(self, key: Callable[[Meter], K]) -> "dict[K, Recent]":
        """Split by a key, such as the queue."""
        parts: dict[K, list[Meter]] = {}
        for each in self.meters:
            parts.setdefault(key(each), []).append(each)
        return {name: Recent(self.now, tuple(meters)) for name, meters in parts.items()}

    def total(self) -> Meter:
        """The sum over all queues and types."""
        counted = dict(zip(COUNTERS, map(sum, zip(*map(_counters, self.meters), strict=True)), strict=False))
        waits, runs = (each.wait.bins for each in self.meters), (each.run.bins for each in self.meters)
        return Meter(queue="", type="", wait=merge(waits), run=merge(runs), **counted)

    def summed(self, by: SumBy) -> "Recent":
        """The meters of each queue or type as two: of the intervals in the rate window, and of those before it."""
        fresh = interval_of(self.now - RATE_WINDOW)
        parts: dict[tuple[str, bool], list[Meter]] = {}
        for each in self.meters:
            parts.setdefault((getattr(each, by), each.interval_start >= fresh), []).append(each)
        sums = tuple(_as_one(by, name, found) for (name, _), found in parts.items())
        return Recent(self.now, sums, len(self.meters))

    def completed_by_interval(self, count: int) -> list[int]:
        """Completed attempts in each of the last `count` complete intervals, oldest first."""
        current = interval_of(self.now)
        done = dict.fromkeys((current - INTERVAL * back for back in range(count, 0, -1)), 0)
        for each in self.meters:
            if each.interval_start in done:
                done[each.interval_start] += each.completed
        return list(done.values())


def _as_one(by: SumBy, name: str, meters: list[Meter]) -> Meter:
    start = min(each.interval_start for each in meters)
    whole = Recent(start, tuple(meters)).total()
    return msgspec.structs.replace(whole, interval_start=start, **{by: name})


def interval_of(moment: Micros) -> Micros:
    """The start of the interval that contains a moment."""
    return moment - moment % INTERVAL
