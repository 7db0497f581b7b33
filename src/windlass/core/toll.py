"""The toll: which of the jobs that are next may start by the rates of their queue and of their keys.

They pay in their order, and nobody is overtaken: where the queue cannot pay for one, those behind it wait as well.
Where only its key cannot, it steps aside until the moment when the key can, and so do those of its key behind it.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.rate import Bucket, Rate, full, price, ready_at, refilled, spent

RATED = "rate limit of its key"
"""The reason of a scheduled job that waits for tokens of its key."""


class Fare(msgspec.Struct, frozen=True, gc=False):
    """What a job that is next has to pay."""

    id: JobId
    cost: int = 1
    key: str = ""
    rate: Rate | None = None
    """Of its key."""


class Aside(msgspec.Struct, frozen=True, gc=False):
    """A job that has stepped aside before, and comes back for so many tokens of its key."""

    until: Micros
    cost: int


class Verdict(msgspec.Struct):
    """Who starts, who steps aside and until when, what is left in the buckets that were spent from."""

    paid: list[JobId] = []
    aside: dict[JobId, Micros] = {}
    own: Bucket | None = None
    """The queue's."""
    keys: dict[str, tuple[Bucket, Rate]] = {}
    until: Micros | None = None
    """When the queue can pay for the one at which it came to a stop; None: it came to none."""


class Purses(msgspec.Struct):
    """What there is to be spent: the bucket of the queue and of keys (missing: full), and who is to come back."""

    rate: Rate | None
    own: Bucket | None
    keys: Mapping[str, Bucket] = {}
    aside: Mapping[str, Sequence[Aside]] = {}


def charge(fares: Iterable[Fare], purses: Purses, now: Micros) -> Verdict:
    """Let them pay in their order, until the queue cannot."""
    verdict = Verdict()
    own = None if purses.rate is None else refilled(purses.own or full(purses.rate, now), purses.rate, now)
    plans: dict[str, Bucket] = {}
    for fare in fares:
        bucket = None
        if fare.rate is not None:
            bucket = _bucket(fare, fare.rate, purses, verdict, now)
            if _is_short(fare, fare.rate, bucket, purses, plans):
                verdict.aside[fare.id] = _step_aside(fare, fare.rate, bucket, purses, plans)
                continue
        if own is not None and purses.rate is not None:
            due = price(fare.cost, purses.rate)
            if own.tokens < due:
                verdict.until = ready_at(own, purses.rate, due)
                break
            own = verdict.own = spent(own, due)
        if bucket is not None and fare.rate is not None:
            verdict.keys[fare.key] = spent(bucket, price(fare.cost, fare.rate)), fare.rate
        verdict.paid.append(fare.id)
    return verdict


def _bucket(fare: Fare, rate: Rate, purses: Purses, verdict: Verdict, now: Micros) -> Bucket:
    held = verdict.keys[fare.key][0] if fare.key in verdict.keys else purses.keys.get(fare.key)
    return refilled(held or full(rate, now), rate, now)


def _is_short(fare: Fare, rate: Rate, bucket: Bucket, purses: Purses, plans: Mapping[str, Bucket]) -> bool:
    behind = fare.key in plans or bool(purses.aside.get(fare.key))
    return behind or bucket.tokens < price(fare.cost, rate)


def _step_aside(fare: Fare, rate: Rate, bucket: Bucket, purses: Purses, plans: dict[str, Bucket]) -> Micros:
    """The moment at which the key can pay for it, after all who stepped aside before it."""
    plan = plans.get(fare.key)
    if plan is None:
        plan = bucket
        for before in sorted(purses.aside.get(fare.key, ()), key=lambda aside: aside.until):
            due = price(before.cost, rate)
            at = max(before.until, ready_at(plan, rate, due))
            plan = spent(refilled(plan, rate, at), due)
    due = price(fare.cost, rate)
    until = ready_at(plan, rate, due)
    plans[fare.key] = spent(refilled(plan, rate, until), due)
    return until
