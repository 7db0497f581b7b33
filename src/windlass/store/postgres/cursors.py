"""Cursors of a ruled queue: how far the claims of this process have come, in each place and lane of it.

The same as for plain claims: what is dead was walked past once. Whoever puts a job back makes the cursors void, and
now and then, as long as that takes only a small part of the time, a claim begins at the floors.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.postgres.sparing import Sparing

SWEEP_EVERY: Micros = 1 * SECOND
NOWHERE = JobId("00000000-0000-0000-0000-000000000000")
MOST_SEEN = 10_000

Place = tuple[int, str | None]
"""An urgency, and a lane in it."""
Seen = tuple[Micros, JobId]


class Candidate(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A pending job that was locked: it may be next."""

    place: str
    """Where its row is in the table."""
    id: JobId
    urgency: int
    rank: Micros
    lane: str | None
    cost: int
    key: str | None
    key_rate: str | None


class Cursors:
    """Of one queue."""

    def __init__(self) -> None:
        self._seen: dict[Place, Seen] = {}
        self._returns = -1
        self._swept = 0
        self._sparing = Sparing()
        self.flowing = False
        """Whether the last claim got all it asked for."""
        self.from_floor = False

    def begin(self, returns: int) -> None:
        """A claim begins; so often were jobs put back in this queue."""
        if returns != self._returns or len(self._seen) > MOST_SEEN:
            self._seen.clear()
            self._returns = returns
        due = not self.flowing or since_boot() - self._swept >= SWEEP_EVERY
        self.from_floor = due and self._sparing.may()

    def may_sweep(self) -> bool:
        """What came short from the cursors on: whether one may look from the floors on as well."""
        if self.from_floor:
            return False
        self.from_floor = self._sparing.may()
        return self.from_floor

    def end(self, taken: Iterable[Any], *, fair: bool, flowing: bool) -> None:
        """The claim has found what it can, and taken these: the next ones are behind them."""
        self.flowing = flowing
        if self.from_floor:
            self._sparing.done()
            self._swept = since_boot()
            # A claim that ends before it looks for anything has not begun here, and must not be taken for long.
            self.from_floor = False
        for job in taken:
            place, seen = (job["urgency"], job["lane"] if fair else None), (job["rank"], job["id"])
            self._seen[place] = max(self._seen.get(place, seen), seen)

    def starts(self, places: Sequence[tuple[Place, Micros]]) -> list[Seen]:
        """Where to begin in each of these places, whose floors are as given."""
        if self.from_floor:
            return [(floor, NOWHERE) for _, floor in places]
        return [max(self._seen.get(place, (floor, NOWHERE)), (floor, NOWHERE)) for place, floor in places]

    @property
    def farthest(self) -> Micros:
        """The highest rank that was taken anywhere."""
        return max((rank for rank, _ in self._seen.values()), default=0)
