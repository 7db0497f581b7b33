"""What a claim asks of a limited queue, and what an attempt returns."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.store.postgres.limits.rate_check import Grant
from windlass.store.records import ClaimRequest


class Asked(msgspec.Struct, frozen=True):
    """The part of a claim for one queue."""

    request: ClaimRequest
    queue: str
    limit: int
    taken: int
    """How many jobs the claim has from other queues."""
    first: bool
    """Whether nothing was taken yet: then jobs with the number of this claim are from an earlier try."""
    over: Sequence[int] = ()
    """Older claims of the runner whose rows can be shortened."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt."""

    rows: Sequence[Any] = ()
    again: bool = False
    """Whether an earlier try of the same claim took jobs: nothing was claimed now."""
    plain: bool = False
    """Whether the queue is not limited any more: nothing was claimed."""
    short: int = 0
    """How many slots are missing; if any, nothing was claimed."""
    admit: bool = False
    """Whether jobs that wait for keys should be admitted first: nothing was claimed."""
    throttled: bool = False
    """Whether jobs were throttled, so that others may start instead."""
    found: bool = False
    """Whether there were as many jobs as wanted."""
    grant: Grant | None = None
    wait: Micros | None = None
    """How long until there are tokens again, from `now` on."""
    now: Micros = 0
    shrunk: bool = False
    """Whether the runner gave up slots, which others may want."""


class Leave(msgspec.Struct, frozen=True):
    """Whether an attempt may return without jobs because something should be done first."""

    admit: bool
    """To have jobs admitted that wait for keys."""
    ask: bool
    """To ask for more slots."""
