"""Statistics: meters, added up as runners report them, and samples made of them. Reading them never walks jobs."""

import struct
from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import (
    COUNTERS,
    INTERVAL,
    METER_RETENTION,
    Histogram,
    Meter,
    Recent,
    SumBy,
    interval_of,
)
from windlass.core.stats.samples import MINUTE, SAMPLE_RETENTION, Depth, Sampled, pruned_until
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import Counts
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator.read_jobs import counts
from windlass.store.samples import sample

MAX_METERS = 200
"""Meters in one call of a script that reads them."""
MAX_PLACES = 2_000
"""Places in one call that reads the meters of one queue or type."""
MAX_ADDED = 50
"""Meters in one call: each has two histograms, which are added up bucket by bucket."""
_SLOT = struct.Struct(">q")
_value = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int, list[int], list[int]])


async def record(access: Access, meters: Sequence[Meter]) -> None:
    """Add to the current interval."""
    for at in range(0, len(meters), MAX_ADDED):
        some = [(each.queue, each.type, _kept(each)) for each in meters[at : at + MAX_ADDED]]
        await access.call_global("add_meters", (INTERVAL, some))


async def recent(
    access: Access, length: Micros, queue: str | None = None, type_: str | None = None, by: SumBy | None = None
) -> Recent:
    """The meters of the last `length` microseconds."""
    found = await _meters(access, _Period(length=length), queue, type_)
    return found if by is None else found.summed(by)


async def between(access: Access, since: Micros, until: Micros) -> tuple[Meter, ...]:
    """The meters of a period."""
    return (await _meters(access, _Period(since=since, until=until))).meters


class _Period(msgspec.Struct, frozen=True, kw_only=True):
    """The last `length` microseconds, or from `since` to `until`."""

    length: Micros | None = None
    since: Micros | None = None
    until: Micros | None = None


async def _meters(access: Access, period: _Period, queue: str | None = None, type_: str | None = None) -> Recent:
    """In portions: of more places if only some of their meters are wanted."""
    found: list[Meter] = []
    portion = MAX_METERS if queue is None and type_ is None else MAX_PLACES
    asked = (INTERVAL, period.length, period.since, period.until, portion, queue, type_)
    after = b""
    while True:
        now, after, *pairs = await access.call_global("read_meters", asked, after)
        found += [_meter(place, value) for place, value in zip(pairs[::2], pairs[1::2], strict=True) if value]
        if not after:
            return Recent(now, tuple(found))


async def oldest(access: Access) -> dict[str, Micros]:
    """How long the oldest pending job of each queue has waited; a rank is the moment from which a job waits."""
    replies = await access.call_queues("oldest_pending", dict.fromkeys(await access.queue_names(), ((),)))
    return {queue: max(0, now - rank) for queue, (now, rank) in replies.items() if rank}


def _kept(meter: Meter) -> list[int | list[int]]:
    """As parts/stats.lua adds them up."""
    counted: list[int | list[int]] = [getattr(meter, name) for name in COUNTERS]
    histograms = ([number for pair in each.buckets.items() for number in pair] for each in (meter.wait, meter.run))
    return [*counted, *histograms]


def _meter(place: bytes, value: bytes) -> Meter:
    (slot,) = _SLOT.unpack_from(place)
    queue, type_ = place[_SLOT.size :].decode().split("\0")
    *counted, wait, run = _value.decode(value)
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(queue=queue, type=type_, interval_start=slot, wait=_histogram(wait), run=_histogram(run), **counters)


def _histogram(flat: Iterable[int]) -> Histogram:
    numbers = iter(flat)
    return Histogram(dict(zip(numbers, numbers, strict=True)))


PORTION = 500
"""Samples that one call of a script reads."""
MAX_PRUNED = 100
"""Portions that one call of `prune_stats` drops; the coordinator calls again."""
METERS, DEPTHS = b"s", b"d"
"""Kinds of samples."""

_PLACE = struct.Struct(">cqq")
_OBSERVATIONS = struct.Struct(">q")
_encode = msgspec.msgpack.Encoder().encode
_sampled_meter = msgspec.msgpack.Decoder(Meter)
_depth = msgspec.msgpack.Decoder(Depth)


async def make_samples(access: Access) -> Sampled:
    """Make the minutes and hours that can be made."""
    return await sample(RedisSampleStore(access))


async def samples_in(access: Access, window: SampleQuery) -> Samples:
    """The samples of a window."""
    return await RedisSampleStore(access).samples(window)


class RedisSampleStore:
    """Reads are in portions; a write is one call, atomic."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Micros:
        return await self._access.now()

    async def meters_between(self, since: Micros, until: Micros) -> list[Meter]:
        return list(await between(self._access, since, until))

    async def last_sampled(self, step: Micros, at_most: Micros) -> Micros | None:
        bounds = b"(" + _head(METERS, step, at_most + 1), b"[" + _head(METERS, step, 0)
        return _first_slot(await self._access.command("ZREVRANGEBYLEX", "sample_index", *bounds, "LIMIT", 0, 1))

    async def first_sampled(self, step: Micros, at_least: Micros) -> Micros | None:
        return await _first(self._access, METERS, step, at_least)

    async def has_depths(self, minute: Micros) -> bool:
        return await _first(self._access, DEPTHS, MINUTE, minute) == minute

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await counts(self._access), await oldest(self._access)

    async def samples(self, window: SampleQuery) -> Samples:
        made = window.reduce([_sampled_meter.decode(value) async for value in _samples(self._access, METERS, window)])
        if window.times == "none":
            return Samples(made, ())
        depths = msgspec.structs.replace(window, queue=window.depth_queue)
        looked = [_depth.decode(value) async for value in _samples(self._access, DEPTHS, depths)]
        return Samples(made, tuple(looked))

    async def write_samples(self, step: Micros, meters: Sequence[Meter], queue_depths: Sequence[Depth]) -> None:
        kept = [
            (_place(METERS, step, each.interval_start, each.queue, each.type), each.ended, _encode(each))
            for each in meters
        ]
        kept += [
            (_place(DEPTHS, step, each.interval_start, each.queue, ""), each.observations, _encode(each))
            for each in queue_depths
        ]
        blobs = [blob for place, _, value in kept for blob in (place, value)]
        await self._access.call_global("set_samples", [says for _, says, _ in kept], *blobs)


async def prune_stats(access: Access) -> None:
    """Drop meters, minutes and hours whose retention is over, at most MAX_PRUNED portions of each."""
    now = await access.now()
    await _prune(access, "meters", "meter_index", b"", _SLOT.pack(interval_of(now - METER_RETENTION)))
    for step in SAMPLE_RETENTION:
        until = pruned_until(now, step, await _first(access, METERS, step, 0))
        for kind in (METERS, DEPTHS):
            await _prune(access, "samples", "sample_index", _head(kind, step, 0), _head(kind, step, until))


async def _prune(access: Access, key: str, index: str, first: bytes, until: bytes) -> None:
    for _ in range(MAX_PRUNED):
        if await access.call_global("prune_stats", (key, index, PORTION), first, until) < PORTION:
            return


async def _samples(access: Access, kind: bytes, window: SampleQuery) -> AsyncIterator[bytes]:
    """Stored samples in the order of time, read in portions."""
    asked = (kind.decode(), window.step, window.since, window.until, window.queue, window.type, PORTION)
    after = b""
    while True:
        after, *pairs = await access.call_global("read_samples", asked, after)
        for value in pairs[1::2]:
            if value:
                yield value[_OBSERVATIONS.size :]
        if not after:
            return


async def _first(access: Access, kind: bytes, step: Micros, at_least: Micros) -> Micros | None:
    bounds = b"[" + _head(kind, step, at_least), b"(" + _head(kind, step + 1, 0)
    return _first_slot(await access.command("ZRANGEBYLEX", "sample_index", *bounds, "LIMIT", 0, 1))


def _head(kind: bytes, step: Micros, slot: Micros) -> bytes:
    return _PLACE.pack(kind, step, slot)


def _place(kind: bytes, step: Micros, slot: Micros, queue: str, type_: str) -> bytes:
    """As parts/stats.lua has it."""
    return _head(kind, step, slot) + f"{queue}\0{type_}".encode()


def _first_slot(places: Sequence[bytes]) -> Micros | None:
    slot: Micros | None = _PLACE.unpack_from(places[0])[2] if places else None
    return slot
