"""What a claim asks of a limited queue, and what an attempt at it returns."""

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
    """Jobs of other queues that the claim has."""
    first: bool
    """Whether nothing was taken yet: then what is found under the claim's number is from an earlier try."""
    over: Sequence[int] = ()
    """Older claims of the runner whose rows can be shortened."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an attempt."""

    rows: Sequence[Any] = ()
    again: bool = False
    """An earlier attempt of the same claim took jobs."""
    plain: bool = False
    """The queue is not limited any more."""
    short: int = 0
    """Slots that are missing: nothing was claimed."""
    admit: bool = False
    """Waiting jobs may be admitted first: nothing was claimed."""
    throttled: bool = False
    """Jobs were throttled: others may start instead."""
    found: bool = False
    """Whether there were as many jobs as wanted."""
    grant: Grant | None = None
    wait: Micros | None = None
    """How long until there are tokens again, from `now` on."""
    now: Micros = 0
    shrunk: bool = False
    """Slots were given up."""


class Leave(msgspec.Struct, frozen=True):
    """What an attempt may return instead of jobs, because something has to be done first."""

    admit: bool
    ask: bool
