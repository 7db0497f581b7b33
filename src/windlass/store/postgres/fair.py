"""Fair claims: tenants who have jobs waiting take turns, by their weights (core/fairness.py)."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.fairness import Standing, took, turns
from windlass.core.moments import Micros
from windlass.store.postgres.cursors import Candidate, Cursors
from windlass.store.postgres.db import Db
from windlass.store.postgres.sparing import Sparing


class Search(msgspec.Struct, frozen=True):
    """What is looked for: pending jobs of some types in the places of a queue, from their floors on."""

    queue: str
    types: Sequence[str]
    places: Sequence[tuple[int, Micros]]
    weights: Mapping[str, float] = {}


class _Round(msgspec.Struct):
    """The turns at one urgency, and the tenants who were listed last."""

    standing: Standing = msgspec.field(default_factory=Standing)
    listed: list[str] = []
    after: str = ""
    whole: bool = False
    """Whether those were all."""
    sparing: Sparing = msgspec.field(default_factory=Sparing)


class Turns:
    """Whose turn it is in one queue, as far as the claims of this process go. Nothing of it need be kept."""

    def __init__(self) -> None:
        self._rounds: dict[int, _Round] = defaultdict(_Round)

    async def candidates(self, db: Db, search: Search, cursors: Cursors, jobs: int) -> list[Candidate]:
        """The next of them, the most urgent first, among equals whose turn it is; locked."""
        found: list[Candidate] = []
        for urgency, floor in search.places:
            if len(found) >= jobs:
                break
            at = _At(db, search, cursors, urgency, floor)
            found += await self._at(at, jobs - len(found))
        return found

    async def _at(self, at: "_At", jobs: int) -> list[Candidate]:
        """Tenants who come short leave the rest to the others."""
        turn = self._rounds[at.urgency]
        waiting = set(await _list(turn, at, jobs))
        found: list[Candidate] = []
        standing, counts = turn.standing, Counter[str]()
        while waiting and len(found) < jobs:
            order = turns(standing, waiting, at.search.weights, jobs - len(found))
            wanted = Counter(order)
            lanes = await at.next_of(wanted, counts)
            some = [lanes[lane].popleft() for lane in order if lanes[lane]]
            found += some
            got = Counter(job.lane or "" for job in some)
            counts += got
            short = {lane for lane in wanted if got[lane] < wanted[lane]}
            if not short:
                break
            waiting -= short
            standing = took(standing, got, at.search.weights, waiting)
        return found

    def took(self, taken: Iterable[Any], weights: Mapping[str, float]) -> None:
        """These were taken: it is the others' turn."""
        lanes: dict[int, Counter[str]] = defaultdict(Counter)
        for job in taken:
            if job["lane"] is not None:
                lanes[job["urgency"]][job["lane"]] += 1
        for urgency, counts in lanes.items():
            turn = self._rounds[urgency]
            turn.standing = took(turn.standing, counts, weights, turn.listed)


class _At(msgspec.Struct, frozen=True):
    """One urgency of a queue, in the course of one claim."""

    db: Db
    search: Search
    cursors: Cursors
    urgency: int
    floor: Micros

    async def next_of(self, wanted: Mapping[str, int], before: Mapping[str, int]) -> dict[str, deque[Candidate]]:
        """So many of each lane. What this claim has found before is locked by itself, so it is found once more."""
        counts = {lane: jobs + before[lane] for lane, jobs in wanted.items()}
        found = await self._ask(counts)
        short = {lane: jobs for lane, jobs in counts.items() if len(found[lane]) < jobs}
        if short and self.cursors.may_sweep():
            found |= await self._ask(short)
        return defaultdict(deque, {lane: deque(list(jobs)[before[lane] :]) for lane, jobs in found.items()})

    async def _ask(self, counts: Mapping[str, int]) -> dict[str, deque[Candidate]]:
        starts = self.cursors.starts([((self.urgency, lane), self.floor) for lane in counts])
        values = {
            "queue": self.search.queue,
            "urgency": self.urgency,
            "types": list(self.search.types),
            "lanes": list(counts),
            "counts": list(counts.values()),
            "ranks": [rank for rank, _ in starts],
            "ids": [id_ for _, id_ in starts],
        }
        found: dict[str, deque[Candidate]] = defaultdict(deque)
        for row in await self.db.rows("lane_candidates", values):
            job = Candidate(*row)
            found[job.lane or ""].append(job)
        return found


async def _list(turn: _Round, at: _At, most: int) -> list[str]:
    """Tenants who wait, at most so many, going round from where the last list ended.

    While an old snapshot is held, a list walks past all that is dead: then the last one must do for a while.
    """
    if not turn.sparing.may():
        return turn.listed
    begin = "" if turn.whole else turn.after
    listed = await _tenants(at, begin, most + 1)
    if begin and listed[:1] == [begin]:
        listed = listed[1:]
    listed = listed[:most]
    if begin and len(listed) < most:
        first = await _tenants(at, "", most - len(listed))
        listed += [lane for lane in first if lane not in listed]
    turn.whole = len(listed) < most
    turn.after = listed[-1] if listed else ""
    turn.listed = listed
    turn.sparing.done()
    return listed


async def _tenants(at: _At, begin: str, most: int) -> list[str]:
    values = {"queue": at.search.queue, "urgency": at.urgency, "from": begin, "limit": most}
    return [row[0] for row in await at.db.rows("tenants", values)]
