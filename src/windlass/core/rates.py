"""Rates: meters as people read them, in seconds. One vocabulary for the terminal, JSON and later faces."""

import msgspec

from windlass.core.meter import Histogram, Meter, Recent
from windlass.core.moments import SECOND, Micros

RATE_OVER: Micros = 20 * SECOND
"""Rates are over the last two or three slots: steady enough to read, fresh enough to act on."""
TIMES_OVER: Micros = 300 * SECOND
"""Times and failures are over the last five minutes, so that a quantile is of more than a handful."""


class Quantiles(msgspec.Struct, frozen=True):
    """How long, in seconds; None without any."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """How it goes with some jobs: those of a queue, of a type, or all."""

    per_second: float = 0.0
    """Completed attempts, over the last 20 to 30 seconds."""
    completed: int = 0
    """In the last five minutes, like all that follows."""
    failures: int = 0
    """Attempts that failed, crashed, or made their job dead."""
    wait: Quantiles = Quantiles()
    """From when an attempt was due to its start."""
    run: Quantiles = Quantiles()
    """In the handler."""


def rates(recent: Recent) -> Rates:
    """The rates of what was metered lately."""
    total = recent.since(TIMES_OVER).total()
    return Rates(
        per_second=recent.rate(RATE_OVER),
        completed=total.completed,
        failures=total.bad,
        wait=quantiles(total.wait),
        run=quantiles(total.run),
    )


def by_queue(recent: Recent) -> dict[str, Rates]:
    """The rates of each queue."""
    return {name: rates(part) for name, part in recent.by(_queue).items()}


def by_type(recent: Recent) -> dict[str, Rates]:
    """The rates of each type, over all queues."""
    return {name: rates(part) for name, part in recent.by(_type).items()}


def quantiles(times: Histogram) -> Quantiles:
    """The three that people ask for."""
    found = [times.quantile(share) for share in (0.5, 0.95, 0.99)]
    return Quantiles(*(None if micros is None else round(micros / SECOND, 6) for micros in found))


def _queue(meter: Meter) -> str:
    return meter.queue


def _type(meter: Meter) -> str:
    return meter.type
