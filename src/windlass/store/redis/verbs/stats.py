"""Statistics: meters, added up as runners report them. Reading them never walks jobs."""

import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import (
    COUNTERS,
    INTERVAL,
    RATE_WINDOW,
    Bins,
    Histogram,
    Meter,
    Recent,
    SumBy,
    interval_of,
)
from windlass.store.redis.connection.access import Access

MAX_METERS = 200
"""Meters in one call of a script that reads them."""
MAX_LOOKED = 2_000
"""Places in one call that reads the meters of one queue or type."""
MAX_ADDED = 50
"""Meters in one call: each has two histograms, which are added up bin by bin."""
EMPTY = Histogram()
START = struct.Struct(">q")
_value = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int, list[int], list[int]])


async def record(access: Access, meters: Sequence[Meter]) -> None:
    """Add meters to the current interval."""
    for at in range(0, len(meters), MAX_ADDED):
        some = [(each.queue, each.type, packed_meter(each)) for each in meters[at : at + MAX_ADDED]]
        await access.call_global("add_meters", (INTERVAL, some))


async def recent(
    access: Access, length: Micros, queue: str | None = None, type_: str | None = None, by: SumBy | None = None
) -> Recent:
    """The meters of the last `length` microseconds."""
    period = _Period(length=length)
    if by is None:
        return await _meters(access, period, queue, type_)
    return await _summed(access, period, queue, type_, by)


async def between(access: Access, since: Micros, until: Micros) -> tuple[Meter, ...]:
    """The meters of a period."""
    return (await _meters(access, _Period(since=since, until=until))).meters


class _Period(msgspec.Struct, frozen=True, kw_only=True):
    """The last `length` microseconds, or from `since` to `until`."""

    length: Micros | None = None
    since: Micros | None = None
    until: Micros | None = None


async def _meters(access: Access, period: _Period, queue: str | None = None, type_: str | None = None) -> Recent:
    found: list[Meter] = []
    at: Micros = 0
    async for now, pairs in _portions(access, period, queue, type_):
        at = now
        found += [_meter(field, value) for field, value in pairs]
    return Recent(at, tuple(found))


async def _summed(access: Access, period: _Period, queue: str | None, type_: str | None, by: SumBy) -> Recent:
    """As `Recent.summed` does it, without a record for each meter: a large store has tens of thousands."""
    sums: dict[tuple[str, bool], Sum] = {}
    firsts: dict[tuple[str, bool], Micros] = {}
    read, at = 0, 0 if by == "queue" else 1
    async for now, pairs in _portions(access, period, queue, type_):
        fresh = interval_of(now - RATE_WINDOW)
        read += len(pairs)
        for field, value in pairs:
            (start,) = START.unpack_from(field)
            key = field[START.size :].decode().split("\0")[at], start >= fresh
            firsts.setdefault(key, start)  # fields are in the order of time
            *counted, wait, run = _value.decode(value)
            (sums.get(key) or sums.setdefault(key, Sum())).add(counted, wait, run)
    named = {key: ((key[0], "") if by == "queue" else ("", key[0])) for key in sums}
    return Recent(now, tuple(found.meter(firsts[key], *named[key]) for key, found in sums.items()), read)


class Sum:
    """The sum of stored meters."""

    def __init__(self) -> None:
        self._counters = [0] * len(COUNTERS)
        self._times: tuple[Bins, Bins] = defaultdict(int), defaultdict(int)

    def add(self, counters: Iterable[int], *times: list[int] | msgspec.Raw) -> None:
        """Add a meter; histograms that were not decoded are left out."""
        self._counters = list(map(int.__add__, self._counters, counters))
        for bins, flat in zip(self._times, times, strict=True):
            if isinstance(flat, list):
                numbers = iter(flat)
                for bin_number in numbers:
                    bins[bin_number] += next(numbers)

    def meter(self, start: Micros, queue: str, type_: str) -> Meter:
        """The sum, as a meter."""
        counters = dict(zip(COUNTERS, self._counters, strict=True))
        wait, run = (Histogram(dict(each)) if each else EMPTY for each in self._times)
        return Meter(queue=queue, type=type_, interval_start=start, wait=wait, run=run, **counters)


async def _portions(
    access: Access, period: _Period, queue: str | None, type_: str | None
) -> AsyncIterator[tuple[Micros, list[tuple[bytes, bytes]]]]:
    """The time, and fields with their meters: of more fields if only some of their meters are wanted."""
    portion = MAX_METERS if queue is None and type_ is None else MAX_LOOKED
    asked = (INTERVAL, period.length, period.since, period.until, portion, queue, type_)
    after = b""
    while True:
        now, after, *flat = await access.call_global("read_meters", asked, after)
        yield now, [pair for pair in zip(flat[::2], flat[1::2], strict=True) if pair[1]]
        if not after:
            return


async def oldest(access: Access) -> dict[str, Micros]:
    """How long the oldest pending job of each queue has waited; a rank is the moment from which a job waits."""
    replies = await access.call_queues("oldest_pending", dict.fromkeys(await access.queue_names(), ((),)))
    return {queue: max(0, now - rank) for queue, (now, rank) in replies.items() if rank}


def packed_meter(meter: Meter) -> list[int | list[int]]:
    """A meter as parts/global/stats.lua adds it up."""
    counted: list[int | list[int]] = [getattr(meter, name) for name in COUNTERS]
    histograms = ([number for pair in each.bins.items() for number in pair] for each in (meter.wait, meter.run))
    return [*counted, *histograms]


def _meter(field: bytes, value: bytes) -> Meter:
    (start,) = START.unpack_from(field)
    queue, type_ = field[START.size :].decode().split("\0")
    *counted, wait, run = _value.decode(value)
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(
        queue=queue, type=type_, interval_start=start, wait=_histogram(wait), run=_histogram(run), **counters
    )


def _histogram(flat: Iterable[int]) -> Histogram:
    numbers = iter(flat)
    return Histogram(dict(zip(numbers, numbers, strict=True)))
