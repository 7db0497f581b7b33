"""Meters: what happened to the jobs of one type in one queue during one slot of time, and how long it took.

Statistics, not guarantees: they are added up in batches, and a lost or doubled one only blurs the picture.
"""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from windlass.core.moments import SECOND, Micros

K = TypeVar("K")
Buckets = dict[int, int]

SLOT: Micros = 10 * SECOND
"""How long a slot is: short enough for a live view, long enough that a few rows tell of any number of jobs."""
KEPT: Micros = 3600 * SECOND
"""How long slots are kept: at most 360 rows for each type in each queue, whatever the load."""

_EXACT = 16


def bucket(value: Micros) -> int:
    """The number of the bucket that holds a value: exact below 16, then eight buckets for each doubling.

    Whole numbers only, so that every store and every language counts alike. The middle of a bucket is never farther
    than a sixteenth from any value in it.
    """
    if value >= _EXACT:
        shift = value.bit_length() - 4
        return (shift << 3) + (value >> shift)
    return value if value > 0 else 0


def middle(number: int) -> float:
    """The value that stands for all in a bucket."""
    if number < _EXACT:
        return float(number)
    shift = (number >> 3) - 1
    low = ((number & 7) + 8) << shift
    return low + ((1 << shift) - 1) / 2


class Histogram(msgspec.Struct, frozen=True):
    """How many values fell into which bucket; only buckets that hold any are there."""

    buckets: Buckets = {}

    @property
    def count(self) -> int:
        """How many values there are."""
        return sum(self.buckets.values())

    def quantile(self, share: float) -> float | None:
        """The value below which this share of them lies, to a sixteenth; None without any."""
        wanted = min(max(1, math.ceil(share * self.count)), self.count)
        for number in sorted(self.buckets):
            wanted -= self.buckets[number]
            if wanted <= 0:
                return middle(number)
        return None

    def merge(self, other: "Histogram") -> "Histogram":
        """Both together; the order in which histograms are merged does not matter."""
        return Histogram(_added(self.buckets, other.buckets))


def histogram(values: Iterable[Micros]) -> Histogram:
    """These values, counted."""
    buckets: Buckets = {}
    for number in map(bucket, values):
        buckets[number] = buckets.get(number, 0) + 1
    return Histogram(buckets)


class Meter(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of one type in one queue that ended in one slot; each is counted under one ending.

    Attempts that were handed back did not happen, and are not counted.
    """

    queue: str
    type: str
    slot: Micros = 0
    """When the slot began, by the store's clock; the store fills it in."""
    completed: int = 0
    failed: int = 0
    """Will be tried again."""
    dead: int = 0
    cancelled: int = 0
    snoozed: int = 0
    crashed: int = 0
    """Their own process ended under them; will be tried again."""
    wait: Histogram = Histogram()
    """Microseconds from when an attempt was due to its start."""
    run: Histogram = Histogram()
    """Microseconds in the handler."""

    @property
    def ended(self) -> int:
        """Attempts in all."""
        return self.completed + self.failed + self.dead + self.cancelled + self.snoozed + self.crashed

    @property
    def bad(self) -> int:
        """Attempts that somebody may want to look at."""
        return self.failed + self.dead + self.crashed

    def add(self, other: "Meter") -> "Meter":
        """Both together; where and when is taken from this one."""
        counted = {name: getattr(self, name) + getattr(other, name) for name in COUNTERS}
        return msgspec.structs.replace(
            self, wait=self.wait.merge(other.wait), run=self.run.merge(other.run), **counted
        )


COUNTERS = ("completed", "failed", "dead", "cancelled", "snoozed", "crashed")
"""The counters of a meter, each the name of an ending."""


class Recent(msgspec.Struct, frozen=True):
    """The meters of the slots since a moment, and the store's time when they were read."""

    now: Micros
    meters: tuple[Meter, ...]

    def since(self, length: Micros) -> "Recent":
        """Only the slots that reach into so much of the past."""
        first = slot_of(self.now - length)
        return Recent(self.now, tuple(each for each in self.meters if each.slot >= first))

    def rate(self, length: Micros) -> float:
        """Completed attempts per second, over the slots that reach into so much of the past."""
        spanned = self.now - slot_of(self.now - length)
        return sum(each.completed for each in self.since(length).meters) * SECOND / spanned

    def by(self, key: Callable[[Meter], K]) -> "dict[K, Recent]":
        """Parted by a key, such as the queue."""
        parts: dict[K, list[Meter]] = {}
        for each in self.meters:
            parts.setdefault(key(each), []).append(each)
        return {name: Recent(self.now, tuple(meters)) for name, meters in parts.items()}

    def total(self) -> Meter:
        """All of them as one, whatever their queues and types are."""
        waits: Buckets = {}
        runs: Buckets = {}
        counted = dict.fromkeys(COUNTERS, 0)
        for each in self.meters:
            _add(waits, each.wait.buckets)
            _add(runs, each.run.buckets)
            for name in COUNTERS:
                counted[name] += getattr(each, name)
        return Meter(queue="", type="", wait=Histogram(waits), run=Histogram(runs), **counted)

    def course(self, slots: int) -> list[int]:
        """How many were completed in each of the last slots that are over, oldest first."""
        current = slot_of(self.now)
        done = dict.fromkeys((current - SLOT * back for back in range(slots, 0, -1)), 0)
        for each in self.meters:
            if each.slot in done:
                done[each.slot] += each.completed
        return list(done.values())


def slot_of(moment: Micros) -> Micros:
    """When the slot of a moment began."""
    return moment - moment % SLOT


def _added(first: Buckets, second: Buckets) -> Buckets:
    added = dict(first)
    _add(added, second)
    return added


def _add(into: Buckets, other: Buckets) -> None:
    for number, held in other.items():
        into[number] = into.get(number, 0) + held
