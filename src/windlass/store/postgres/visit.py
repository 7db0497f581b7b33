"""A visit to a ruled queue: one try of a claim, in its transaction.

Look at the terms, lock candidates, decide which of them may go, take those.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.rate import wait_for
from windlass.errors import LeaseLost
from windlass.store.postgres.cursors import Candidate
from windlass.store.postgres.db import Db
from windlass.store.postgres.fair import Search
from windlass.store.postgres.recall import Recall
from windlass.store.postgres.terms import Terms
from windlass.store.postgres.tolls import FAR, SOON, Grant, Payer, Toll, reach, toll
from windlass.store.records import ClaimRequest


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
    """So many more slots are needed, as far as there are any: nothing was taken."""
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


class Leave(msgspec.Struct, frozen=True):
    """What a try may end with instead of jobs, because something is to be done first."""

    admit: bool
    ask: bool


class Visit:
    """One try, in its transaction."""

    def __init__(self, recall: Recall, asked: Asked, grant: Grant | None, leave: Leave, *, since: int) -> None:
        self.terms: Terms | None = None
        self._since = since
        self._recall = recall
        self._asked = asked
        self._cursors = recall.cursors(asked.queue)
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
            held = self._recall.holds(queue, request.runner)
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
        values = {"queue": queue, "since": self._recall.oldest(queue, runner), **numbers}
        held, oldest, again = (await db.rows("hold", values))[0]
        self._recall.note_held(queue, runner, held, oldest or self._asked.request.claim)
        return held, again

    async def _shrink(self, db: Db, terms: Terms, held: int) -> Outcome:
        """The limit was lowered: nobody starts anything until it fits.

        What others have and do not use must be taken from them: one that has its hands full may not ask for long.
        """
        if held < terms.slots:
            values = {"queue": self._asked.queue, "runner": self._asked.request.runner, "slots": held}
            await db.run("set_slots", values)
        return Outcome(
            short=self._asked.limit if self._leave.ask else 0, shrunk=held < terms.slots, grant=self._grant
        )

    async def _from(self, db: Db, terms: Terms, room: int) -> Outcome:
        jobs, wait = self._most(terms, room)
        if jobs <= 0:
            return Outcome(grant=self._grant, wait=wait, now=terms.now)
        if terms.rate is not None and self._grant is None and not await reach(db, self._asked.queue, terms.rate):
            return Outcome(wait=SOON, now=terms.now)
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
        """In one step, where nobody has to pay. What was taken is not found again from the floors on."""
        numbers = {"runner": self._asked.request.runner, "claim": self._asked.request.claim}
        rows = await db.rows("take_best", {**numbers, **self._values(search, jobs)})
        if len(rows) < jobs and self._cursors.may_sweep():
            rows += await db.rows("take_best", {**numbers, **self._values(search, jobs - len(rows))})
        return sorted(rows, key=itemgetter("urgency", "rank", "id"))

    async def _find(self, db: Db, terms: Terms, jobs: int) -> list[Candidate]:
        search = self._search(terms)
        if not terms.fair:
            return await self._best(db, search, jobs)
        found = await self._recall.turns(search.queue).candidates(db, search, self._cursors, jobs)
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
