"""Samples: minutes and hours made of meters, read in portions, added up while they are decoded."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import METER_RETENTION, Meter, interval_of
from windlass.core.stats.samples import MINUTE, SAMPLE_RETENTION, Depth, Sampled, pruned_until
from windlass.core.stats.timeline import SampleQuery, Samples, Times
from windlass.store.records import Counts
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator.read_jobs import counts
from windlass.store.redis.verbs.stats import START, Sum, between, oldest, packed_meter
from windlass.store.samples import sample

W = TypeVar("W")
R = TypeVar("R")
PORTION = 500
"""Samples that one call of a script reads."""
MAX_PRUNED = 100
"""Portions that one call of `prune_stats` drops; the coordinator calls again."""
METERS, DEPTHS = b"s", b"d"
"""Kinds of samples."""

_HEAD = struct.Struct(">cqq")
_OBSERVATIONS = struct.Struct(">q")
_encode = msgspec.msgpack.Encoder().encode


class _Sample(msgspec.Struct, Generic[W, R], array_like=True, frozen=True, gc=False):
    """A sample as it is stored, histograms as in parts/global/stats.lua; those not wanted stay undecoded."""

    start: Micros
    queue: str
    type: str
    counters: tuple[int, int, int, int, int, int]
    wait: W
    run: R


_sample_decoders: dict[Times, msgspec.msgpack.Decoder[Any]] = {
    "both": msgspec.msgpack.Decoder(_Sample[list[int], list[int]]),
    "wait": msgspec.msgpack.Decoder(_Sample[list[int], msgspec.Raw]),
    "run": msgspec.msgpack.Decoder(_Sample[msgspec.Raw, list[int]]),
    "none": msgspec.msgpack.Decoder(_Sample[msgspec.Raw, msgspec.Raw]),
}
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
        return _first_start(await self._access.command("ZREVRANGEBYLEX", "sample_index", *bounds, "LIMIT", 0, 1))

    async def first_sampled(self, step: Micros, at_least: Micros) -> Micros | None:
        return await _first(self._access, METERS, step, at_least)

    async def has_depths(self, minute: Micros) -> bool:
        return await _first(self._access, DEPTHS, MINUTE, minute) == minute

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await counts(self._access), await oldest(self._access)

    async def samples(self, window: SampleQuery) -> Samples:
        made = _added_up(window, await _samples(self._access, METERS, window))
        if window.times == "none":
            return Samples(made, ())
        return Samples(made, tuple(map(_depth.decode, await _depths(self._access, window))))

    async def write_samples(self, step: Micros, meters: Sequence[Meter], queue_depths: Sequence[Depth]) -> None:
        kept = [
            (_field(METERS, step, each.interval_start, each.queue, each.type), each.ended, _stored(each))
            for each in meters
        ]
        kept += [
            (_field(DEPTHS, step, each.interval_start, each.queue, ""), each.observations, _encode(each))
            for each in queue_depths
        ]
        blobs = [blob for field, _, value in kept for blob in (field, value)]
        await self._access.call_global("set_samples", [observations for _, observations, _ in kept], *blobs)


async def prune_stats(access: Access) -> None:
    """Drop meters, minutes and hours whose retention is over, at most MAX_PRUNED portions of each."""
    now = await access.now()
    await _prune(access, "meters", "meter_index", b"", START.pack(interval_of(now - METER_RETENTION)))
    for step in SAMPLE_RETENTION:
        until = pruned_until(now, step, await _first(access, METERS, step, 0))
        for kind in (METERS, DEPTHS):
            await _prune(access, "samples", "sample_index", _head(kind, step, 0), _head(kind, step, until))


async def _prune(access: Access, key: str, index: str, first: bytes, until: bytes) -> None:
    for _ in range(MAX_PRUNED):
        if await access.call_global("prune_stats", (key, index, PORTION), first, until) < PORTION:
            return


async def _samples(access: Access, kind: bytes, window: SampleQuery) -> list[bytes]:
    """Stored samples in the order of time, read in portions."""
    asked = (kind.decode(), window.step, window.since, window.until, window.queue, window.type, PORTION)
    found: list[bytes] = []
    after = b""
    while True:
        after, *values = await access.call_global("read_samples", asked, after)
        found += [value[_OBSERVATIONS.size :] for value in values if value]
        if not after:
            return found


def _added_up(window: SampleQuery, values: Iterable[bytes]) -> tuple[Meter, ...]:
    """Samples as meters; if the window asks for it, those of a step are added up by queue, by type, or all."""
    decode = _sample_decoders[window.times].decode
    sums: dict[tuple[Micros, str, str], Sum] = {}
    for value in values:
        each = decode(value)
        key = (
            each.start,
            each.queue if window.by in (None, "queue") else "",
            each.type if window.by in (None, "type") else "",
        )
        (sums.get(key) or sums.setdefault(key, Sum())).add(each.counters, each.wait, each.run)
    return tuple(found.meter(start, queue, type_) for (start, queue, type_), found in sums.items())


def _stored(meter: Meter) -> bytes:
    *counters, wait, run = packed_meter(meter)
    return _encode([meter.interval_start, meter.queue, meter.type, counters, wait, run])


async def _depths(access: Access, window: SampleQuery) -> list[bytes]:
    """Depths in the order of time. Those of one queue are read by their fields: the index has those of all."""
    first = -(-window.since // window.step) * window.step
    starts = range(first, window.until, window.step)
    if window.depth_queue is None or len(starts) > PORTION:
        return await _samples(access, DEPTHS, msgspec.structs.replace(window, queue=window.depth_queue))
    queues = sorted({"", window.depth_queue})
    fields = [_field(DEPTHS, window.step, start, queue, "") for start in starts for queue in queues]
    found: list[bytes] = []
    for at in range(0, len(fields), PORTION):
        values = await access.command("HMGET", "samples", *fields[at : at + PORTION])
        found += [value[_OBSERVATIONS.size :] for value in values if value]
    return found


async def _first(access: Access, kind: bytes, step: Micros, at_least: Micros) -> Micros | None:
    bounds = b"[" + _head(kind, step, at_least), b"(" + _head(kind, step + 1, 0)
    return _first_start(await access.command("ZRANGEBYLEX", "sample_index", *bounds, "LIMIT", 0, 1))


def _head(kind: bytes, step: Micros, start: Micros) -> bytes:
    return _HEAD.pack(kind, step, start)


def _field(kind: bytes, step: Micros, start: Micros, queue: str, type_: str) -> bytes:
    """The field of a sample, as in parts/global/stats.lua."""
    return _head(kind, step, start) + f"{queue}\0{type_}".encode()


def _first_start(fields: Sequence[bytes]) -> Micros | None:
    start: Micros | None = _HEAD.unpack_from(fields[0])[2] if fields else None
    return start
