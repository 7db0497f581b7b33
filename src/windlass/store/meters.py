"""Meters as they are kept: the counters as columns, the histograms as JSON."""

from typing import Any

import msgspec

from windlass.core.codec import UNREADABLE
from windlass.core.meter import COUNTERS, Buckets, Histogram, Meter
from windlass.core.moments import Micros

_buckets = msgspec.json.Decoder(Buckets)


def meter_values(slot: Micros, meter: Meter) -> dict[str, Any]:
    """What is written of a meter, by column."""
    values: dict[str, Any] = {name: getattr(meter, name) for name in ("queue", "type", *COUNTERS)}
    for name in ("wait", "run"):
        values[name] = msgspec.json.encode(getattr(meter, name).buckets).decode()
    return {"slot": slot, **values}


def to_meter(row: tuple[Any, ...]) -> Meter:
    """A row of slot, queue, type, the counters in their order, wait and run."""
    slot, queue, type_, *counted, wait, run = row
    counters = dict(zip(COUNTERS, counted, strict=True))
    return Meter(slot=slot, queue=queue, type=type_, wait=histogram_of(wait), run=histogram_of(run), **counters)


def histogram_of(stored: Any) -> Histogram:
    """What somebody edited by hand into something else counts as nothing: these are only statistics."""
    try:
        return Histogram(_buckets.decode(stored))
    except UNREADABLE:
        return Histogram()
