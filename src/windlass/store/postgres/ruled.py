"""Claims from ruled queues: with limits, rates, or tenants who take turns. One queue at a time, in a transaction.

Candidates are locked, it is decided which of them may go, and those are taken. What the queue lets run at once is a
matter of shares.py, rates of tolls.py, turns of fair.py.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.job import Claimed
from windlass.core.moments import Micros
from windlass.core.rate import wait_for
from windlass.errors import LeaseLost
from windlass.store.postgres import shares
from windlass.store.postgres.access import Access
from windlass.store.postgres.cursors import Candidate, Cursors
from windlass.store.postgres.db import Db
from windlass.store.postgres.fair import Search, Turns
from windlass.store.postgres.lines import Lines
from windlass.store.postgres.openings import Openings
from windlass.store.postgres.terms import Terms
from windlass.store.postgres.tolls import FAR, Grant, Payer, Toll, toll
from windlass.store.records import ClaimRequest

MOST_ROUNDS = 20
"""Of a claim in which jobs step aside, so that it ends."""

_FIELDS = len(Claimed.__struct_fields__)


class Asked(msgspec.Struct, frozen=True):
    """A claim's part for one queue."""

    request: ClaimRequest
    queue: str
    limit: int
    taken: int
    """How many jobs of other queues the claim has."""
    first: bool
    """Whether nothing was taken yet: then what is found under the claim's number is from an earlier try."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a try."""

    rows: Sequence[Any] = ()
    again: bool = False
    """An earlier try of this very claim has taken jobs."""
    plain: bool = False
    """The queue is not ruled any more."""
    short: int = 0
    """So many more slots are needed: nothing was taken."""
    admit: bool = False
    """Jobs in line may be let in first: nothing was taken."""
    aside: bool = False
    """Jobs have stepped aside: others may go instead."""
    found: bool = False
    """Whether there were as many jobs as it looked for."""
    grant: Grant | None = None
    wait: Micros | None = None
    """How long until there are tokens again, from this moment of the server's on."""
    now: Micros = 0
    shrunk: bool = False
    """Slots were given up: others may have them."""


class _Leave(msgspec.Struct, frozen=True):
    """What a try may end with instead of jobs, because something is to be done first."""

    admit: bool
    ask: bool


class RuledClaims:
    """Those of one process: how far they have come, whose turn it is, what was granted, and when tokens come."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._cursors: dict[str, Cursors] = {}
        self._turns: dict[str, Turns] = {}
        self._grants: dict[tuple[str, str], Grant] = {}
        self._oldest: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}
        self.openings = Openings()

    async def claim(self, access: Access, asked: Asked) -> Outcome:
        """One queue's part of a claim; if the runner's share is too small, it asks for more and tries once more."""
        outcome = await self._granted(access, asked)
        rows = list(outcome.rows)
        for _ in range(MOST_ROUNDS):
            if not outcome.aside or len(rows) >= asked.limit:
                break
            # Others may go instead of those who have stepped aside.
            left, taken = asked.limit - len(rows), asked.taken + len(rows)
            rest = msgspec.structs.replace(asked, limit=left, taken=taken, first=False)
            outcome = await self._granted(access, rest)
            rows += outcome.rows
        return msgspec.structs.replace(outcome, rows=rows) if rows else outcome

    async def _granted(self, access: Access, asked: Asked) -> Outcome:
        """With those in line who may go in, and with as large a share as there is."""
        outcome = await self._try(access, asked, _Leave(admit=True, ask=True))
        if outcome.admit:
            await self._lines.admit(access, asked.limit, self.farthest(asked.queue) + 1)
            outcome = await self._try(access, asked, _Leave(admit=False, ask=True))
        if outcome.short:
            await shares.ask(access, asked.queue, asked.request.runner, outcome.short)
            outcome = await self._try(access, asked, _Leave(admit=False, ask=False))
        return outcome

    async def _try(self, access: Access, asked: Asked, leave: "_Leave") -> Outcome:
        at = (asked.queue, asked.request.runner)
        cursors = self._cursors.setdefault(asked.queue, Cursors())
        self.openings.forget(asked.queue)
        # If the answer does not come, nobody knows what was spent.
        grant = self._grants.pop(at, None)
        visit = _Visit(self, asked, cursors, grant, leave, since=self._lines.since([asked.queue]))
        try:
            outcome = await access.write(visit.claim)
        except BaseException:
            self._held.pop(at, None)
            raise
        if at in self._held:
            self._held[at] += len(outcome.rows)
        if outcome.grant is not None:
            self._grants[at] = outcome.grant
        if (terms := visit.terms) is not None:
            self._lines.note([asked.queue], [asked.queue] if terms.marked else [], terms.behind)
            if outcome.wait is not None:
                self.openings.note(asked.queue, outcome.now, outcome.wait, terms.rate_limit)
            if not outcome.short and not outcome.admit:
                cursors.end(flowing=outcome.found)
                cursors.move(outcome.rows)
                self.turns(asked.queue).took(outcome.rows, terms.weights)
        return outcome

    def farthest(self, queue: str) -> Micros:
        """How far the claims have come there, in any place."""
        return self._cursors[queue].farthest if queue in self._cursors else 0

    def turns(self, queue: str) -> Turns:
        """Whose turn it is there."""
        return self._turns.setdefault(queue, Turns())

    def oldest(self, queue: str, runner: str) -> int:
        """No claim of this runner with a lower number has jobs of this queue."""
        return self._oldest.get((queue, runner), 0)

    def holds(self, queue: str, runner: str) -> int | None:
        """No more than this: what was counted, and all that was taken since."""
        return self._held.get((queue, runner))

    def note_held(self, queue: str, runner: str, held: int, oldest: int) -> None:
        """So many were counted. Numbers of claims only grow."""
        self._oldest = {at: n for at, n in self._oldest.items() if at[1] == runner}
        self._oldest[queue, runner] = oldest
        self._held[queue, runner] = held


class _Visit:
    """One try, in its transaction."""

    def __init__(
        self, claims: RuledClaims, asked: Asked, cursors: Cursors, grant: Grant | None, leave: _Leave, *, since: int
    ) -> None:
        self.terms: Terms | None = None
        self._since = since
        self._claims = claims
        self._asked = asked
        self._cursors = cursors
        self._grant = grant
        self._leave = leave

    async def claim(self, db: Db) -> Outcome:
        """Look, find, decide, take."""
        request, queue = self._asked.request, self._asked.queue
        numbers = {"runner": request.runner, "claim": request.claim, "first": self._asked.first}
        rows = await db.rows("ruled", {"queue": queue, "since": self._since, **numbers})
        if not rows:
            return Outcome()
        terms = self.terms = Terms(*rows[0])
        if not terms.leased:
            raise LeaseLost(request.runner)
        if terms.again or terms.plain:
            return Outcome(again=terms.again, plain=terms.plain)
        if terms.marked and self._leave.admit:
            return Outcome(admit=True, grant=self._grant)
        room = self._asked.limit
        if terms.most is not None:
            held = self._claims.holds(queue, request.runner)
            if held is None or terms.slots - held < self._asked.limit or terms.given > terms.most:
                held, again = await self._count(db, numbers)
                if again:
                    return Outcome(again=True)
            if terms.given > terms.most:
                return await self._shrink(db, terms, held)
            room = terms.slots - held
        return await self._from(db, terms, room)

    async def _count(self, db: Db, numbers: dict[str, Any]) -> tuple[int, bool]:
        """What the runner really holds, in a statement after its share was locked; and whether of this very claim."""
        queue, runner = self._asked.queue, self._asked.request.runner
        values = {"queue": queue, "since": self._claims.oldest(queue, runner), **numbers}
        held, oldest, again = (await db.rows("hold", values))[0]
        self._claims.note_held(queue, runner, held, oldest or self._asked.request.claim)
        return held, again

    async def _shrink(self, db: Db, terms: Terms, held: int) -> Outcome:
        """The limit was lowered: nobody starts anything until it fits."""
        if held < terms.slots:
            values = {"queue": self._asked.queue, "runner": self._asked.request.runner, "slots": held}
            await db.run("set_slots", values)
        return Outcome(shrunk=held < terms.slots)

    async def _from(self, db: Db, terms: Terms, room: int) -> Outcome:
        jobs, wait = self._most(terms, room)
        if jobs <= 0:
            return Outcome(grant=self._grant, wait=wait, now=terms.now)
        self._cursors.begin(terms.returns)
        if not terms.fair and not terms.rated and terms.rate is None and room >= jobs:
            rows = await self._take_best(db, self._search(terms), jobs)
            return Outcome(rows, found=len(rows) == jobs)
        found = await self._find(db, terms, jobs)
        full = len(found) == jobs
        if terms.most is not None and len(found) > room:
            if self._leave.ask:
                return Outcome(short=len(found) - room, grant=self._grant)
            found = found[: max(0, room)]
        result = (
            await self._toll(db, terms, found) if terms.rate or terms.rated else Toll(paid=found, grant=self._grant)
        )
        rows = await self._take(db, result) if result.paid or result.aside else []
        aside = bool(result.aside)
        return Outcome(rows, aside=aside, found=full, grant=result.grant, wait=result.wait, now=result.now)

    def _most(self, terms: Terms, room: int) -> tuple[int, Micros | None]:
        """How many to look for; if there are no tokens, none, and how long until there are."""
        asked, left, wait = self._asked, [], None
        if terms.most is not None:
            left.append(terms.most - terms.given + max(0, room))
        if terms.rate is not None:
            bucket = terms.bucket(terms.rate)
            if self._grant is not None and (self._grant.tokens < asked.limit or self._grant.until < terms.now):
                self._grant = None
            left.append(bucket.tokens if self._grant is None else self._grant.tokens)
            wait = wait_for(bucket, terms.rate, 1) if left[-1] <= 0 else None
        jobs = asked.limit
        near = min(left, default=FAR * asked.request.limit) < FAR * asked.request.limit
        if asked.request.free is not None and (near or terms.rated):
            # Nothing is claimed ahead where a limit is near.
            jobs = min(jobs, asked.request.free - asked.taken)
        return min(jobs, left[-1]) if terms.rate is not None else jobs, wait

    def _search(self, terms: Terms) -> Search:
        places = list(zip(terms.urgencies, terms.floors, strict=True))
        return Search(self._asked.queue, self._asked.request.types, places, terms.weights)

    async def _take_best(self, db: Db, search: Search, jobs: int) -> list[Any]:
        """In one step, where nobody has to pay; what was taken from the cursors on is not found from the floors on."""
        numbers = {"runner": self._asked.request.runner, "claim": self._asked.request.claim}
        rows = await db.rows("take_best", {**numbers, **self._values(search, jobs)})
        if len(rows) < jobs and self._cursors.may_sweep():
            rows += await db.rows("take_best", {**numbers, **self._values(search, jobs - len(rows))})
        return sorted(rows, key=itemgetter("urgency", "rank", "id"))

    async def _find(self, db: Db, terms: Terms, jobs: int) -> list[Candidate]:
        search = self._search(terms)
        if not terms.fair:
            return await self._best(db, search, jobs)
        found = await self._claims.turns(search.queue).candidates(db, search, self._cursors, jobs)
        if len(found) < jobs and self._cursors.from_floor:
            # Those that are in no lane yet, since the queue was not always fair.
            found += await self._ask(db, search, jobs - len(found), laneless=True)
        return found

    async def _best(self, db: Db, search: Search, jobs: int) -> list[Candidate]:
        found = await self._ask(db, search, jobs)
        if len(found) < jobs and self._cursors.may_sweep():
            # What was found before is locked by ourselves, so it is found again.
            found = await self._ask(db, search, jobs)
        return found

    async def _ask(self, db: Db, search: Search, jobs: int, *, laneless: bool = False) -> list[Candidate]:
        values = {**self._values(search, jobs), "laneless": laneless}
        return [Candidate(*row) for row in await db.rows("candidates", values)]

    def _values(self, search: Search, jobs: int) -> dict[str, Any]:
        starts = self._cursors.starts([((urgency, None), floor) for urgency, floor in search.places])
        return {
            "queue": search.queue,
            "types": list(search.types),
            "limit": jobs,
            "urgencies": [urgency for urgency, _ in search.places],
            "ranks": [rank for rank, _ in starts],
            "ids": [id_ for _, id_ in starts],
        }

    async def _toll(self, db: Db, terms: Terms, found: Sequence[Candidate]) -> Toll:
        if not found:
            return Toll(grant=self._grant)
        asked = self._asked
        payer = Payer(asked.queue, asked.request.runner, terms.rate, self._grant, asked.limit, terms.now)
        result = await toll(db, payer, found)
        if self._grant is not None and result.wait is not None:
            # What was granted is not enough for the next: the gate may have more.
            result.grant, result.wait = None, 0
        return result

    async def _take(self, db: Db, result: Toll) -> list[Any]:
        request = self._asked.request
        values = {"queue": self._asked.queue, "runner": request.runner, "claim": request.claim, **result.values()}
        rows = await db.rows("take", values)
        nth = {job.id: n for n, job in enumerate(result.paid)}
        return sorted(rows, key=lambda row: nth[row["id"]])


def claimed(row: Any) -> Claimed:
    """A job that was taken."""
    return Claimed(*row[:_FIELDS])
