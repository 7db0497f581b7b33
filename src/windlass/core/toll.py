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


Place = tuple[int, Micros, JobId]
"""Where a job stands among others: urgency, rank, id."""


class Fare(msgspec.Struct, frozen=True, gc=False):
    """What a job that is next has to pay."""

    place: Place
    cost: int = 1
    key: str = ""
    rate: Rate | None = None
    """Of its key."""

    @property
    def id(self) -> JobId:
        """Of the job."""
        return self.place[2]


class Aside(msgspec.Struct, frozen=True, gc=False, order=True):
    """A job that has stepped aside before, and comes back for so many tokens of its key."""

    place: Place
    until: Micros
    cost: int = 1


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
    plans: dict[str, _Plan] = {}
    for fare in fares:
        if fare.rate is not None:
            if fare.key not in plans:
                plans[fare.key] = _plan(fare.key, fare.rate, purses, now)
            if (until := plans[fare.key].wait(fare, fare.rate)) is not None:
                verdict.aside[fare.id] = until
                continue
        if own is not None and purses.rate is not None:
            due = price(fare.cost, purses.rate)
            if own.tokens < due:
                verdict.until = ready_at(own, purses.rate, due)
                break
            own = verdict.own = spent(own, due)
        if fare.rate is not None:
            verdict.keys[fare.key] = plans[fare.key].pay(fare, fare.rate), fare.rate
        verdict.paid.append(fare.id)
    return verdict


class _Plan(msgspec.Struct):
    """What a key has to spend, now and after those who have stepped aside."""

    now: Bucket
    after: list[Aside]
    """Who will come back, in the order of their places."""
    later: Bucket | None = None
    """What is left when the last of them who was passed has paid; None: nobody was."""

    def wait(self, fare: Fare, rate: Rate) -> Micros | None:
        """Until when it must step aside; None: it can pay. Nobody pays before one who stands before him."""
        due = price(fare.cost, rate)
        while self.after and self.after[0].place < fare.place:
            before = self.after.pop(0)
            self._set_apart(before.until, price(before.cost, rate), rate)
        if self.later is None and refilled(self.now, rate, self.now.at).tokens >= due:
            return None
        return self._set_apart(0, due, rate)

    def pay(self, fare: Fare, rate: Rate) -> Bucket:
        """What is left."""
        self.now = spent(refilled(self.now, rate, self.now.at), price(fare.cost, rate))
        return self.now

    def _set_apart(self, earliest: Micros, due: int, rate: Rate) -> Micros:
        bucket = refilled(self.later or self.now, rate, (self.later or self.now).at)
        until = max(earliest, ready_at(bucket, rate, due))
        self.later = spent(refilled(bucket, rate, until), due)
        return until


def _plan(key: str, rate: Rate, purses: Purses, now: Micros) -> _Plan:
    return _Plan(refilled(purses.keys.get(key) or full(rate, now), rate, now), sorted(purses.aside.get(key, ())))
