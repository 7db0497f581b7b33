"""sample, course: what is made of meters, and what is kept of it."""

import struct
from collections.abc import AsyncIterator, Sequence

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import Meter
from windlass.core.stats.samples import MINUTE, SAMPLE_RETENTION, Depth, Sampled, pruned_until
from windlass.core.stats.timeline import SampleQuery, Samples
from windlass.store.records import Counts
from windlass.store.redis.connection.access import Access
from windlass.store.redis.operator import counts
from windlass.store.redis.stats import meters
from windlass.store.samples import sample

PORTION = 500
"""Samples that one call of a script looks at."""
MAX_PRUNED = 100
"""Portions that are dropped at a time; the coordinator comes back."""
METERS, DEPTHS = b"s", b"d"
"""Kinds of samples."""

_PLACE = struct.Struct(">cqq")
_OBSERVATIONS = struct.Struct(">q")
_encode = msgspec.msgpack.Encoder().encode
_meter = msgspec.msgpack.Decoder(Meter)
_depth = msgspec.msgpack.Decoder(Depth)


async def make_samples(access: Access) -> Sampled:
    """Make the minutes and hours that can be made."""
    return await sample(RedisSampleStore(access))


async def samples_in(access: Access, window: SampleQuery) -> Samples:
    """The samples of a window."""
    return await RedisSampleStore(access).samples(window)


class RedisSampleStore:
    """Every look and every write is of a bounded number; only a write is of all that belongs together."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def now(self) -> Micros:
        return await self._access.now()

    async def meters_between(self, since: Micros, until: Micros) -> list[Meter]:
        return list(await meters.between(self._access, since, until))

    async def last_sampled(self, step: Micros, at_most: Micros) -> Micros | None:
        bounds = b"(" + _head(METERS, step, at_most + 1), b"[" + _head(METERS, step, 0)
        return _first_slot(await self._access.command("ZREVRANGEBYLEX", "sample_index", *bounds, "LIMIT", 0, 1))

    async def first_sampled(self, step: Micros, at_least: Micros) -> Micros | None:
        return await _first(self._access, METERS, step, at_least)

    async def has_depths(self, minute: Micros) -> bool:
        return await _first(self._access, DEPTHS, MINUTE, minute) == minute

    async def counts(self) -> tuple[Counts, dict[str, Micros]]:
        return await counts.counts(self._access), await meters.oldest(self._access)

    async def samples(self, window: SampleQuery) -> Samples:
        made = [_meter.decode(value) async for value in _samples(self._access, METERS, window)]
        looked = [_depth.decode(value) async for value in _samples(self._access, DEPTHS, window)]
        return Samples(tuple(made), tuple(looked))

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


async def prune_samples(access: Access) -> None:
    """Drop minutes and hours that are kept no longer: some of them, if there are many."""
    for step in SAMPLE_RETENTION:
        until = pruned_until(await access.now(), step, await _first(access, METERS, step, 0))
        for kind in (METERS, DEPTHS):
            await _prune(access, kind, step, until)


async def _prune(access: Access, kind: bytes, step: Micros, until: Micros) -> None:
    for _ in range(MAX_PRUNED):
        if await access.call_global("prune_samples", (kind.decode(), step, until, PORTION)) < PORTION:
            return


async def _samples(access: Access, kind: bytes, window: SampleQuery) -> AsyncIterator[bytes]:
    """What was kept, in the order of time, in portions."""
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
    """As parts/sample.lua has it."""
    return _head(kind, step, slot) + f"{queue}\0{type_}".encode()


def _first_slot(places: Sequence[bytes]) -> Micros | None:
    slot: Micros | None = _PLACE.unpack_from(places[0])[2] if places else None
    return slot
