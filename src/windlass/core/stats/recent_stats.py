"""Recent statistics: meters in seconds, for the terminal and JSON."""

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.core.stats.meter import RATE_WINDOW, Histogram, Meter, Recent

DURATION_WINDOW: Micros = 300 * SECOND
"""Five minutes for times and failures, so that quantiles are of more than a few values."""


class Quantiles(msgspec.Struct, frozen=True):
    """Quantiles in seconds; None without values."""

    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class RecentStats(msgspec.Struct, frozen=True, kw_only=True):
    """Recent statistics of a queue, of a type, or of all jobs."""

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


def recent_stats(recent: Recent) -> RecentStats:
    total = recent.since(DURATION_WINDOW).total()
    return RecentStats(
        per_second=recent.rate(RATE_WINDOW),
        completed=total.completed,
        failures=total.bad,
        wait=quantiles(total.wait),
        run=quantiles(total.run),
    )


def by_queue(recent: Recent) -> dict[str, RecentStats]:
    return {name: recent_stats(part) for name, part in recent.by(_queue).items()}


def by_type(recent: Recent) -> dict[str, RecentStats]:
    return {name: recent_stats(part) for name, part in recent.by(_type).items()}


def quantiles(times: Histogram) -> Quantiles:
    if not times.bins:
        return Quantiles()
    found = [times.quantile(share) for share in (0.5, 0.95, 0.99)]
    return Quantiles(*(None if micros is None else round(micros / SECOND, 6) for micros in found))


def _queue(meter: Meter) -> str:
    return meter.queue


def _type(meter: Meter) -> str:
    return meter.type
