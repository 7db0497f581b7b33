"""Meters: what happened to the jobs of one type in one queue during one interval, and how long it took.

Statistics, not guarantees: they are added up in batches, and a lost or repeated batch is tolerated.
"""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from windlass.core.moments import SECOND, Micros

K = TypeVar("K")
Buckets = dict[int, int]

INTERVAL: Micros = 10 * SECOND
"""The length of an interval: short enough for a live view, long enough that rows stay few at any load."""
METER_RETENTION: Micros = 3600 * SECOND
"""How long intervals are kept: at most 360 rows for each type in each queue."""

_EXACT = 16


def bucket(value: Micros) -> int:
    """The number of the bucket that holds a value: exact below 16, then eight buckets for each doubling.

    Integers only, so that every store and language computes the same. The middle of a bucket is within a sixteenth of
    any value in it.
    """
    if value >= _EXACT:
        shift = value.bit_length() - 4
        return (shift << 3) + (value >> shift)
    return value if value > 0 else 0


def middle(number: int) -> float:
    """The middle value of a bucket."""
    if number < _EXACT:
        return float(number)
    shift = (number >> 3) - 1
    low = ((number & 7) + 8) << shift
    return low + ((1 << shift) - 1) / 2


class Histogram(msgspec.Struct, frozen=True):
    """Counts of values by bucket; empty buckets are absent."""

    buckets: Buckets = {}

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.buckets.values())

    def quantile(self, share: float) -> float | None:
        """The value below which this share of them lies, to a sixteenth; None if empty."""
        wanted = min(max(1, math.ceil(share * self.count)), self.count)
        for number in sorted(self.buckets):
            wanted -= self.buckets[number]
            if wanted <= 0:
                return middle(number)
        return None

    def merge(self, other: "Histogram") -> "Histogram":
        """Both together; merging is associative and commutative."""
        return Histogram(_added(self.buckets, other.buckets))


def histogram(values: Iterable[Micros]) -> Histogram:
    buckets: Buckets = {}
    for number in map(bucket, values):
        buckets[number] = buckets.get(number, 0) + 1
    return Histogram(buckets)


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
    """To be tried again."""
    dead: int = 0
    cancelled: int = 0
    snoozed: int = 0
    crashed: int = 0
    """Its process ended; to be tried again."""
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
        """Both together; queue, type and interval are those of this one."""
        counted = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        return msgspec.structs.replace(
            self, wait=self.wait.merge(other.wait), run=self.run.merge(other.run), **counted
        )


COUNTERS = ("completed", "failed", "dead", "cancelled", "snoozed", "crashed")
"""The counters of a meter, each named after an outcome."""


class Recent(msgspec.Struct, frozen=True):
    """The meters of recent intervals, and the store's time when they were read."""

    now: Micros
    meters: tuple[Meter, ...]

    def since(self, length: Micros) -> "Recent":
        """Only the intervals that reach into this length of the past."""
        first = interval_of(self.now - length)
        return Recent(self.now, tuple(each for each in self.meters if each.interval_start >= first))

    def rate(self, length: Micros) -> float:
        """Completed attempts per second, over the intervals that reach into this length of the past."""
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
        waits: Buckets = {}
        runs: Buckets = {}
        counted = dict.fromkeys(COUNTERS, 0)
        for each in self.meters:
            _add(waits, each.wait.buckets)
            _add(runs, each.run.buckets)
            for name in COUNTERS:
                counted[name] += getattr(each, name)
        return Meter(queue="", type="", wait=Histogram(waits), run=Histogram(runs), **counted)

    def completed_by_interval(self, slots: int) -> list[int]:
        """Completed attempts in each of the last complete intervals, oldest first."""
        current = interval_of(self.now)
        done = dict.fromkeys((current - INTERVAL * back for back in range(slots, 0, -1)), 0)
        for each in self.meters:
            if each.interval_start in done:
                done[each.interval_start] += each.completed
        return list(done.values())


def interval_of(moment: Micros) -> Micros:
    """The start of the interval that contains a moment."""
    return moment - moment % INTERVAL


def _added(first: Buckets, second: Buckets) -> Buckets:
    added = dict(first)
    _add(added, second)
    return added


def _add(into: Buckets, other: Buckets) -> None:
    for number, held in other.items():
        into[number] = into.get(number, 0) + held
