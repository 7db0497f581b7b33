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

LISTED = 200
"""So many tenants are looked at in one claim; where more have jobs waiting, the next claim goes on from there."""
NEXT = "\x01"
"""After a name, gives the first that can come after it: no name has a zero byte."""


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
    """Up to whom; nobody: to the end."""
    sparing: Sparing = msgspec.field(default_factory=Sparing)
    asked: set[str] = set()
    """By the claim that is under way."""
    hopeful: set[str] = set()
    """Those of them who may have more."""


class Turns:
    """Whose turn it is in one queue, as far as the claims of this process go. Nothing of it need be kept."""

    def __init__(self) -> None:
        self._rounds: dict[int, _Round] = defaultdict(_Round)

    async def candidates(self, db: Db, search: Search, cursors: Cursors, jobs: int) -> list[Candidate]:
        """The next of them, the most urgent first, among equals whose turn it is; locked."""
        found: list[Candidate] = []
        for turn in self._rounds.values():
            turn.asked, turn.hopeful = set(), set()
        for urgency, floor in search.places:
            at, turn = _At(db, search, cursors, urgency, floor), self._rounds[urgency]
            while len(found) < jobs and (fresh := await _list(turn, at, jobs) - turn.asked):
                found += await _share(turn, at, fresh, jobs - len(found))
        return found

    def took(self, taken: Iterable[Any], weights: Mapping[str, float]) -> None:
        """These were taken: it is the others' turn."""
        lanes: dict[int, Counter[str]] = defaultdict(Counter)
        for job in taken:
            if job["lane"] is not None:
                lanes[job["urgency"]][job["lane"]] += 1
        for urgency, turn in self._rounds.items():
            known = turn.standing.ends.keys() - turn.asked
            if turn.asked:
                turn.standing = took(turn.standing, lanes[urgency], weights, turn.hopeful | known)


async def _share(turn: _Round, at: "_At", waiting: set[str], jobs: int) -> list[Candidate]:
    """Those who come short leave the rest to the others."""
    weights, hopeful = at.search.weights, set(waiting)
    found: list[Candidate] = []
    taken = Counter[str]()
    while hopeful and len(found) < jobs:
        order = turns(took(turn.standing, taken, weights, hopeful), hopeful, weights, jobs - len(found))
        wanted = Counter(order)
        lanes = await at.next_of(wanted, taken)
        some = [lanes[lane].popleft() for lane in order if lanes[lane]]
        found += some
        got = Counter(job.lane or "" for job in some)
        taken += got
        hopeful -= {lane for lane in wanted if got[lane] < wanted[lane]}
        if got == wanted:
            break
    turn.asked |= waiting
    turn.hopeful |= hopeful
    return found


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


async def _list(turn: _Round, at: _At, jobs: int) -> set[str]:
    """Tenants who have jobs waiting, from where the last list ended, and round to there.

    While an old snapshot is held, a list walks past all that is dead: then the last one must do for a while.
    """
    if not turn.sparing.may():
        return set(turn.listed)
    most, start = max(LISTED, jobs), turn.after + NEXT if turn.after else ""
    listed = await _tenants(at, start, most)
    wrapped = bool(start) and len(listed) < most
    if wrapped:
        listed += [lane for lane in await _tenants(at, "", most - len(listed)) if lane < start]
    turn.listed, turn.after = listed, listed[-1] if len(listed) == most else ""
    ends, found = turn.standing.ends, set(listed)
    # Who should have been listed and was not has nothing waiting, and is forgotten.
    turn.standing.ends = {
        lane: end
        for lane, end in ends.items()
        if lane in found or not _lies_between(lane, start, turn.after, wrapped=wrapped)
    }
    turn.sparing.done()
    return found


def _lies_between(lane: str, start: str, last: str, *, wrapped: bool) -> bool:
    """Whether a list from `start` to `last`, or to the end if there is no last, has come past this one."""
    if not last:
        return True
    return lane >= start or lane <= last if wrapped else start <= lane <= last


async def _tenants(at: _At, begin: str, most: int) -> list[str]:
    values = {"queue": at.search.queue, "urgency": at.urgency, "from": begin, "limit": most}
    return [row[0] for row in await at.db.rows("tenants", values)]
