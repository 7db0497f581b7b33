"""Fair claims: tenants with pending jobs take turns by their weights (core/flow/fairness.py)."""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.flow.fairness import FairState, after_claim, next_tenants
from windlass.core.moments import Micros
from windlass.store.postgres.connection.db import Db
from windlass.store.postgres.limits.cursors import Candidate, Cursors
from windlass.store.postgres.limits.throttle import Throttle

MAX_LISTED = 200
"""Tenants listed by one claim; the next claim continues after the last of them."""
NEXT = "\x01"
"""A tenant's name with this suffix is the next possible name, because no name has a zero byte."""
BEYOND = "\x7f"
"""A bound above every name."""


class Search(msgspec.Struct, frozen=True):
    """A search for pending jobs of some types in a queue; `levels` has its priorities with their watermarks."""

    queue: str
    types: Sequence[str]
    levels: Sequence[tuple[int, Micros]]
    weights: Mapping[str, float] = {}


ClaimKey = tuple[str, int]
"""A runner and the number of its claim."""
_rank = itemgetter("rank", "id")


class _Round(msgspec.Struct):
    """The fairness state at one sort priority, and the tenants that were listed last."""

    state: FairState = msgspec.field(default_factory=FairState)
    listed: list[str] = []
    after: str = ""
    """The last tenant listed; empty: all were."""
    emptied: set[str] = set()
    """Listed tenants that have since had fewer jobs than they were asked for."""
    throttle: Throttle = msgspec.field(default_factory=Throttle)
    asked: set[str] = set()
    """Tenants that the current claim has asked for jobs."""
    with_jobs: set[str] = set()
    """Those of the asked tenants that may have more jobs."""


class FairTurns:
    """The fairness states of one queue, for the claims of this process. Only a cache."""

    def __init__(self) -> None:
        self._rounds: dict[int, _Round] = defaultdict(_Round)

    async def candidates(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, trip: Micros = 0
    ) -> list[Candidate]:
        """Lock the next candidates, by priority, then in turn; `trip` is the duration of a small statement."""
        rows = await self._next(db, search, cursors, jobs, None, trip)
        return [Candidate(*row) for row in rows]

    async def claim(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, claim: ClaimKey, trip: Micros = 0
    ) -> list[Any]:
        """Claim the jobs that `candidates` would lock; returns their rows."""
        return await self._next(db, search, cursors, jobs, claim, trip)

    async def _next(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, claim: ClaimKey | None, trip: Micros
    ) -> list[Any]:
        found: list[Any] = []
        for turn in self._rounds.values():
            turn.asked, turn.with_jobs = set(), set()
        for sort_priority, watermark in search.levels:
            at = _At(db, search, cursors, sort_priority, watermark, trip, claim)
            turn = self._rounds[sort_priority]
            while len(found) < jobs and (fresh := await _list(turn, at, jobs) - turn.asked):
                found += await _share(turn, at, fresh, jobs - len(found))
        return found

    def after_claim(self, taken: Iterable[Any], weights: Mapping[str, float]) -> None:
        """Advance the fairness states by the claimed jobs."""
        tenant_queues: dict[int, Counter[str]] = defaultdict(Counter)
        for job in taken:
            if job["tenant_queue"] is not None:
                tenant_queues[job["sort_priority"]][job["tenant_queue"]] += 1
        for sort_priority, turn in self._rounds.items():
            known = turn.state.ends.keys() - turn.asked
            if turn.asked:
                turn.state = after_claim(turn.state, tenant_queues[sort_priority], weights, turn.with_jobs | known)


async def _share(turn: _Round, at: "_At", waiting: set[str], jobs: int) -> list[Any]:
    """Take jobs of these tenants in turn, by their weights; a tenant without more leaves its share to the others."""
    weights, with_jobs = at.search.weights, set(waiting)
    found: list[Any] = []
    taken = Counter[str]()
    while with_jobs and len(found) < jobs:
        order = next_tenants(
            after_claim(turn.state, taken, weights, with_jobs), with_jobs, weights, jobs - len(found)
        )
        wanted = Counter(order)
        tenant_queues = await at.next_of(wanted, taken)
        got = wanted & Counter({tenant_queue: len(rows) for tenant_queue, rows in tenant_queues.items()})
        found += [tenant_queues[tenant_queue].popleft() for tenant_queue in order if tenant_queues[tenant_queue]]
        taken += got
        with_jobs -= {tenant_queue for tenant_queue in wanted if got[tenant_queue] < wanted[tenant_queue]}
        if got == wanted:
            break
    turn.asked |= waiting
    turn.with_jobs |= with_jobs
    turn.emptied |= waiting - with_jobs
    return found


class _At(msgspec.Struct, frozen=True):
    """One sort priority of a queue, within one claim."""

    db: Db
    search: Search
    cursors: Cursors
    sort_priority: int
    watermark: Micros
    trip: Micros
    claim: ClaimKey | None
    """The claim that takes the jobs; None: only lock them."""

    async def next_of(self, wanted: Mapping[str, int], before: Mapping[str, int]) -> dict[str, deque[Any]]:
        """The next jobs of each tenant."""
        if self.claim is not None:
            return await self._claimed(wanted)
        # This claim has locked the candidates found before, so it finds them again.
        counts = {tenant_queue: jobs + before[tenant_queue] for tenant_queue, jobs in wanted.items()}
        found = await self._ask("tenant_candidates", counts)
        if short := self._short(counts, found):
            found |= await self._ask(
                "tenant_candidates", {tenant_queue: counts[tenant_queue] for tenant_queue in short}
            )
        return defaultdict(
            deque, {tenant_queue: deque(list(jobs)[before[tenant_queue] :]) for tenant_queue, jobs in found.items()}
        )

    async def _claimed(self, wanted: Mapping[str, int]) -> dict[str, deque[Any]]:
        found = await self._ask("claim_tenants", wanted)
        if short := self._short(wanted, found):
            for tenant_queue, jobs in (await self._ask("claim_tenants", short)).items():
                found[tenant_queue] += jobs
        return found

    def _short(self, wanted: Mapping[str, int], found: Mapping[str, deque[Any]]) -> dict[str, int]:
        """How many jobs of which tenants are missing, if they may now be searched from the watermarks."""
        missing = {tenant_queue: jobs - len(found.get(tenant_queue, ())) for tenant_queue, jobs in wanted.items()}
        short = {tenant_queue: jobs for tenant_queue, jobs in missing.items() if jobs}
        return short if short and self.cursors.may_sweep() else {}

    async def _ask(self, statement: str, counts: Mapping[str, int]) -> dict[str, deque[Any]]:
        starts = self.cursors.starts(
            [((self.sort_priority, tenant_queue), self.watermark) for tenant_queue in counts]
        )
        values = {
            "queue": self.search.queue,
            "sort_priority": self.sort_priority,
            "types": list(self.search.types),
            "tenant_queues": list(counts),
            "counts": list(counts.values()),
            "ranks": [rank for rank, _ in starts],
            "ids": [id_ for _, id_ in starts],
        }
        if self.claim is not None:
            values["runner"], values["claim"] = self.claim
        found: dict[str, deque[Any]] = defaultdict(deque)
        # The rows of UPDATE … RETURNING have no order.
        for row in sorted(await self.db.rows(statement, values), key=_rank):
            found[row["tenant_queue"] or ""].append(row)
        return found


async def _list(turn: _Round, at: _At, jobs: int) -> set[str]:
    """Tenants with pending jobs; if there are too many, some of them, and the next claim continues after those.

    While the last list is complete, only the gaps between its tenants are searched: the index entries of a tenant
    begin with those of its running and ended jobs, and the claim itself finds out which listed tenants have no more
    jobs.

    While an old snapshot is held, listing scans all dead entries: then the last list is used again for a while,
    unless it was incomplete and its tenants have no more jobs. The time of a round trip to the server does not count
    for that, because a new tenant would have to wait.
    """
    used_up = turn.after and turn.asked.issuperset(turn.listed)
    if not turn.throttle.may_run() and not used_up:
        return set(turn.listed)
    most = max(MAX_LISTED, jobs)
    listed = await _with_others(turn, at, most) or await _whole(turn, at, most)
    turn.emptied = set()
    turn.throttle.done(at.trip)
    return set(listed)


async def _with_others(turn: _Round, at: _At, most: int) -> list[str]:
    """The tenants of a complete list that have more jobs, and all new ones; empty if too many, or unknown."""
    known = sorted(set(turn.listed) - turn.emptied)
    if turn.after or not known or len(known) >= most:
        return []
    values = {
        "queue": at.search.queue,
        "sort_priority": at.sort_priority,
        "starts": ["", *(name + NEXT for name in known)],
        "ends": [*known, BEYOND],
        "limit": most - len(known),
    }
    others = [row[0] for row in await at.db.rows("other_tenants", values)]
    if len(known) + len(others) == most:
        return []
    turn.listed, listed = [*known, *others], {*known, *others}
    turn.state.ends = {name: end for name, end in turn.state.ends.items() if name in listed}
    return turn.listed


async def _whole(turn: _Round, at: _At, most: int) -> list[str]:
    """List tenants after the last listed one, wrapping round at the end."""
    start = turn.after + NEXT if turn.after else ""
    listed = await _tenants(at, start, most)
    wrapped = bool(start) and len(listed) < most
    if wrapped:
        listed += [
            tenant_queue for tenant_queue in await _tenants(at, "", most - len(listed)) if tenant_queue < start
        ]
    turn.listed, turn.after = listed, listed[-1] if len(listed) == most else ""
    ends, found = turn.state.ends, set(listed)
    # A known tenant that the list covers but does not have has no pending jobs: forget it.
    turn.state.ends = {
        tenant_queue: end
        for tenant_queue, end in ends.items()
        if tenant_queue in found or not _is_covered(tenant_queue, start, turn.after, wrapped=wrapped)
    }
    return listed


def _is_covered(tenant_queue: str, start: str, last: str, *, wrapped: bool) -> bool:
    """Whether a list from `start` to `last`, or to the end if `last` is empty, covers this tenant queue."""
    if not last:
        return True
    return tenant_queue >= start or tenant_queue <= last if wrapped else start <= tenant_queue <= last


async def _tenants(at: _At, begin: str, most: int) -> list[str]:
    values = {"queue": at.search.queue, "sort_priority": at.sort_priority, "from": begin, "limit": most}
    return [row[0] for row in await at.db.rows("tenants", values)]
