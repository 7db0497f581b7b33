"""Meters, added up as runners hand them in: reading them never walks the jobs."""

import struct
from collections.abc import Iterable, Sequence

import msgspec

from windlass.core.moments import Micros
from windlass.core.stats.meter import COUNTERS, INTERVAL, METER_RETENTION, Buckets, Histogram, Meter, Recent
from windlass.store.redis.connection.access import Access

PORTION = 200
"""Meters in one call of a script that reads or drops them."""
MAX_ADDED = 50
"""In one call: each has two histograms, which are added up bucket by bucket."""
MAX_PRUNED = 20
"""Portions that are dropped at a time; the coordinator comes back."""

_SLOT = struct.Struct(">q")
_value = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, int, list[int], list[int]])


async def record(access: Access, meters: Sequence[Meter]) -> None:
    """Add to the slot of this moment."""
    for at in range(0, len(meters), MAX_ADDED):
        some = [(each.queue, each.type, _kept(each)) for each in meters[at : at + MAX_ADDED]]
        await access.call_global("add_meters", (INTERVAL, some))


async def recent(access: Access, length: Micros) -> Recent:
    """One range of the places."""
    return await _meters(access, length, None, None)


async def between(access: Access, since: Micros, until: Micros) -> tuple[Meter, ...]:
    """The meters of the slots of a stretch of time."""
    return (await _meters(access, None, since, until)).meters


async def _meters(access: Access, length: Micros | None, since: Micros | None, until: Micros | None) -> Recent:
    """In portions."""
    found: list[Meter] = []
    after = b""
    while True:
        now, *pairs = await access.call_global("read_meters", (INTERVAL, length, since, until, PORTION), after)
        found += [_meter(place, value) for place, value in zip(pairs[::2], pairs[1::2], strict=True) if value]
        if len(pairs) < 2 * PORTION:
            return Recent(now, tuple(found))
        after = pairs[-2]


async def oldest(access: Access) -> dict[str, Micros]:
    """A rank is the moment from which a job waits."""
    replies = await access.call_queues("oldest_pending", dict.fromkeys(await access.queue_names(), ((),)))
    return {queue: max(0, now - rank) for queue, (now, rank) in replies.items() if rank}


async def prune_meters(access: Access) -> None:
    """Drop slots that are kept no longer: some of them, if there are many."""
    for _ in range(MAX_PRUNED):
        if await access.call_global("prune_meters", (INTERVAL, METER_RETENTION, PORTION)) < PORTION:
            return


def _kept(meter: Meter) -> list[int | list[int]]:
    """As parts/meter.lua adds them up."""
    counted: list[int | list[int]] = [getattr(meter, name) for name in COUNTERS]
    return [*counted, *(_flat(each.buckets) for each in (meter.wait, meter.run))]


def _flat(buckets: Buckets) -> list[int]:
    return [number for pair in buckets.items() for number in pair]


def _meter(place: bytes, value: bytes) -> Meter:
    (slot,) = _SLOT.unpack_from(place)
    queue, type_ = place[_SLOT.size :].decode().split("\0")
    *counted, wait, run = _value.decode(value)
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(queue=queue, type=type_, interval_start=slot, wait=_histogram(wait), run=_histogram(run), **counters)


def _histogram(flat: Iterable[int]) -> Histogram:
    numbers = iter(flat)
    return Histogram(dict(zip(numbers, numbers, strict=True)))
