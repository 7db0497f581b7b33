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
"""Tenants listed by one claim; the next claim goes on from there."""
NEXT = "\x01"
"""A name with this suffix is the next possible name: no name contains a zero byte."""
BEYOND = "\x7f"
"""Above every name."""


class Search(msgspec.Struct, frozen=True):
    """A search for pending jobs of some types in a queue, from the watermarks on."""

    queue: str
    types: Sequence[str]
    places: Sequence[tuple[int, Micros]]
    weights: Mapping[str, float] = {}


ClaimKey = tuple[str, int]
"""A runner and the number of its claim."""
_rank = itemgetter("rank", "id")


class _Round(msgspec.Struct):
    """The turns at one sort priority, and the tenants listed last."""

    state: FairState = msgspec.field(default_factory=FairState)
    listed: list[str] = []
    after: str = ""
    """The last tenant listed; empty: all."""
    emptied: set[str] = set()
    """Listed tenants that had too few jobs since."""
    throttle: Throttle = msgspec.field(default_factory=Throttle)
    asked: set[str] = set()
    """Tenants that the current claim has asked for jobs."""
    with_jobs: set[str] = set()
    """Asked tenants that may have more jobs."""


class FairTurns:
    """The fair turns of one queue, for the claims of this process: only a cache."""

    def __init__(self) -> None:
        self._rounds: dict[int, _Round] = defaultdict(_Round)

    async def candidates(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, trip: Micros = 0
    ) -> list[Candidate]:
        """The next candidates, locked: by priority, then by turn; `trip` is the time of a small statement."""
        rows = await self._next(db, search, cursors, jobs, None, trip)
        return [Candidate(*row) for row in rows]

    async def claim(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, claim: ClaimKey, trip: Micros = 0
    ) -> list[Any]:
        """The same jobs, claimed."""
        return await self._next(db, search, cursors, jobs, claim, trip)

    async def _next(
        self, db: Db, search: Search, cursors: Cursors, jobs: int, claim: ClaimKey | None, trip: Micros
    ) -> list[Any]:
        found: list[Any] = []
        for turn in self._rounds.values():
            turn.asked, turn.with_jobs = set(), set()
        for sort_priority, watermark in search.places:
            at = _At(db, search, cursors, sort_priority, watermark, trip, claim)
            turn = self._rounds[sort_priority]
            while len(found) < jobs and (fresh := await _list(turn, at, jobs) - turn.asked):
                found += await _share(turn, at, fresh, jobs - len(found))
        return found

    def after_claim(self, taken: Iterable[Any], weights: Mapping[str, float]) -> None:
        """Account for claimed jobs."""
        tenant_queues: dict[int, Counter[str]] = defaultdict(Counter)
        for job in taken:
            if job["tenant_queue"] is not None:
                tenant_queues[job["sort_priority"]][job["tenant_queue"]] += 1
        for sort_priority, turn in self._rounds.items():
            known = turn.state.ends.keys() - turn.asked
            if turn.asked:
                turn.state = after_claim(turn.state, tenant_queues[sort_priority], weights, turn.with_jobs | known)


async def _share(turn: _Round, at: "_At", waiting: set[str], jobs: int) -> list[Any]:
    """Take jobs tenant by tenant, by their weights; a tenant without more leaves its share to others."""
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
    """Claim the jobs; None: only lock them."""

    async def next_of(self, wanted: Mapping[str, int], before: Mapping[str, int]) -> dict[str, deque[Any]]:
        """The next jobs of each tenant."""
        if self.claim is not None:
            return await self._claimed(wanted)
        # Candidates found before are locked by this claim, so they are found again.
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
        """How many jobs of which tenants are missing, if a search from the watermarks may find them."""
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
        # What an UPDATE returns has no order.
        for row in sorted(await self.db.rows(statement, values), key=_rank):
            found[row["tenant_queue"] or ""].append(row)
        return found


async def _list(turn: _Round, at: _At, jobs: int) -> set[str]:
    """Tenants with pending jobs; if there are too many, some, and the next claim goes on from there.

    While the last list is complete, only the gaps between its tenants are searched: a tenant's own entries begin with
    those of its running and ended jobs, and a claim finds out which of them has no more.

    With an old snapshot a list scans all dead entries: then the last list is used for a while, unless it left tenants
    out and its own have no more jobs. That the server is far away or busy is no reason: a new tenant would wait.
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
    """The tenants of a complete list that have more jobs, and all others; none where those are too many to list."""
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
    """List from where the last list ended, to the end and on from the start."""
    start = turn.after + NEXT if turn.after else ""
    listed = await _tenants(at, start, most)
    wrapped = bool(start) and len(listed) < most
    if wrapped:
        listed += [
            tenant_queue for tenant_queue in await _tenants(at, "", most - len(listed)) if tenant_queue < start
        ]
    turn.listed, turn.after = listed, listed[-1] if len(listed) == most else ""
    ends, found = turn.state.ends, set(listed)
    # A tenant that should be listed and is not has no pending jobs.
    turn.state.ends = {
        tenant_queue: end
        for tenant_queue, end in ends.items()
        if tenant_queue in found or not _is_between(tenant_queue, start, turn.after, wrapped=wrapped)
    }
    return listed


def _is_between(tenant_queue: str, start: str, last: str, *, wrapped: bool) -> bool:
    """Whether a list from `start` to `last`, or to the end without a last, covers this one."""
    if not last:
        return True
    return tenant_queue >= start or tenant_queue <= last if wrapped else start <= tenant_queue <= last


async def _tenants(at: _At, begin: str, most: int) -> list[str]:
    values = {"queue": at.search.queue, "sort_priority": at.sort_priority, "from": begin, "limit": most}
    return [row[0] for row in await at.db.rows("tenants", values)]
