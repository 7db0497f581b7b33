"""What the store says of its own: which attempts ran when, by its clock, and what rules of the queues a test told."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tests.support.checker.lives import FOREVER, Times

Jobs = Mapping[str, dict[str, Any]]
Place = tuple[str, str]
"""A queue and a key."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Span(msgspec.Struct, frozen=True):
    """One attempt under a lease: from its claim to its end, in microseconds of the store's clock."""

    start: int
    end: int
    job: str


class Rules(msgspec.Struct, frozen=True):
    """What a queue was told at the beginning of a run, by a line `rules` of its history."""

    queue: str
    max_concurrency: int | None = None
    rate: str | None = None
    fair: bool = False
    weights: dict[str, float] = {}
    claimers: int = 1
    """How many processes may have shared the jobs out, one after the other or together: each has its own account."""
    deep: int = 20
    """A tenant with so many waiting is one that no claim can leave without."""


def rules(times: Times) -> Iterator[Rules]:
    """Every queue that a test told of."""
    for line in times.rules:
        yield msgspec.convert(line, Rules)


def spans(job: dict[str, Any]) -> Iterator[Span]:
    """The attempts of a job that the store remembers."""
    for attempt in job.get("attempts", ()):
        if attempt.get("claimed_at") is not None:
            yield Span(micros(attempt["claimed_at"]), micros(attempt.get("ended_at")), job["id"])


def most_at_once(held: Iterable[Span]) -> int:
    """The most of these that ran at the same moment; who ends makes room for who begins."""
    events = [event for span in held if span.start < span.end for event in ((span.start, 1), (span.end, -1))]
    now = most = 0
    for _, step in sorted(events):
        now += step
        most = max(most, now)
    return most


def micros(moment: str | None) -> int:
    """A moment of the store's clock; what has not come yet is far away."""
    if moment is None:
        return FOREVER
    return (datetime.fromisoformat(moment) - _EPOCH) // timedelta(microseconds=1)


def by_place(jobs: Jobs, wanted: Callable[[dict[str, Any]], bool]) -> dict[Place, list[dict[str, Any]]]:
    """Jobs with a concurrency key, by it."""
    found: dict[Place, list[dict[str, Any]]] = defaultdict(list)
    for job in jobs.values():
        if job.get("concurrency_key") is not None and wanted(job):
            found[job["queue"], job["concurrency_key"]].append(job)
    return found
