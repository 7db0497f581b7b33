"""Round trips: a server that is 2 ms away, as in another zone: jobs per second against batch size and claimers."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from bench.claimers import drain
from bench.context import BenchContext
from bench.report.figures import Base, Chart, Line, Lines, Row, Section
from bench.worker import fill

UNIT = "jobs/s"
AWAY_SECONDS = 0.002
BATCHES = (1, 10, 50, 200)
BATCHES_EACH = 60
"""Batches per claimer, if there is room for all of them."""
PROFILES = {
    "PostgreSQL": "",
    "profile, strict order": "?profile=yugabyte&buckets=16",
    "profile, loose order": "?profile=yugabyte&buckets=16&order=loose",
}


def measure(context: BenchContext) -> Section:
    """Each profile with each size of batches and number of claimers, in turn."""
    title = "Round trips of 2 ms: claim and complete in batches"
    with context.store() as address:
        if not address.startswith("postgresql:"):
            return Section(name="round-trips", title=title, rows=[], notes=["Not run: for PostgreSQL only."])
    most = max(context.scale.drain // 20, 100)
    rates: dict[tuple[str, int, int], list[float]] = {}
    for _ in context.rounds("round trips"):
        for name, batch, claimers in _cells(context.scale.claimers):
            context.progress(f"round trips: {name}, batches of {batch}, {claimers} claimers")
            jobs = min(most, batch * claimers * BATCHES_EACH)
            with context.store() as address, _away(address + PROFILES[name]) as far:
                fill(address + PROFILES[name], jobs)
                rates.setdefault((name, batch, claimers), []).append(jobs / drain(far, claimers, batch).seconds)
    return Section(name="round-trips", title=title, rows=_rows(rates), charts=_charts(rates), notes=NOTES)


def _cells(numbers: tuple[int, ...]) -> Iterator[tuple[str, int, int]]:
    for batch in BATCHES:
        for claimers in numbers:
            for name in PROFILES:
                yield name, batch, claimers


@contextmanager
def _away(address: str) -> Iterator[str]:
    """The same store, through a proxy that delays requests."""
    # The tests' proxy for the limits of YugabyteDB: here it only delays.
    from tests.support.limits.faults import Limits
    from tests.support.limits.machine import LimitsProxy

    place = urlsplit(address)
    limits = Limits(delay=(AWAY_SECONDS, AWAY_SECONDS), failing=0, failing_commits=0, refusing=False)
    with LimitsProxy(place.hostname or "127.0.0.1", place.port or 5432, limits) as proxy:
        yield proxy.through(address)


def _rows(rates: dict[tuple[str, int, int], list[float]]) -> list[Row]:
    plain = next(iter(PROFILES))
    return [
        Row(
            name=f"{name}: batches of {batch}, {claimers} claimer{'s' if claimers > 1 else ''}",
            unit=UNIT,
            rounds=found,
            base=None if name == plain else Base(f"{plain}, the same", rates[plain, batch, claimers]),
        )
        for (name, batch, claimers), found in rates.items()
    ]


def _charts(rates: dict[tuple[str, int, int], list[float]]) -> list[Chart]:
    return [
        Lines(
            f"Server 2 ms away, {name}",
            "claimers",
            UNIT,
            [
                Line(
                    f"batches of {batch}",
                    [(claimers, sorted(found)[len(found) // 2]) for claimers, found in _of(rates, name, batch)],
                )
                for batch in BATCHES
            ],
        )
        for name in PROFILES
    ]


def _of(rates: dict[tuple[str, int, int], list[float]], name: str, batch: int) -> list[tuple[int, list[float]]]:
    return [(claimers, found) for (of, size, claimers), found in rates.items() if (of, size) == (name, batch)]


NOTES = [
    "One PostgreSQL server on the same machine; every round trip takes 2 ms longer. A claimer is a process that "
    "claims a batch, completes it, and claims the next: 2 round trips per batch, no handlers.",
    "All processes share the processors of one machine: where they are busy, more claimers add nothing here.",
]
