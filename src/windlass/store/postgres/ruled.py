"""Claims from ruled queues: with limits, rates, or tenants who take turns. One queue at a time.

What the queue lets run at once is a matter of shares.py, rates of tolls.py, turns of fair.py.
"""

from typing import Any

import msgspec

from windlass.core.job import Claimed
from windlass.core.moments import Micros
from windlass.store.openings import Openings
from windlass.store.postgres import shares
from windlass.store.postgres.access import Access
from windlass.store.postgres.lines import Lines
from windlass.store.postgres.recall import Recall
from windlass.store.postgres.tolls import Grant
from windlass.store.postgres.visit import Asked, Leave, Outcome, Visit

__all__ = ["Asked", "RuledClaims", "claimed"]

MOST_ROUNDS = 20
"""Of a claim in which jobs step aside, so that it ends."""

_FIELDS = len(Claimed.__struct_fields__)


class RuledClaims:
    """Those of one process: how far they have come, whose turn it is, what was granted, and when tokens come."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._recall = Recall()
        self._grants: dict[tuple[str, str], Grant] = {}
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
        return Outcome(rows, shrunk=outcome.shrunk) if rows else outcome

    async def _granted(self, access: Access, asked: Asked) -> Outcome:
        """With those in line who may go in, and with as large a share as there is."""
        outcome = await self._try(access, asked, Leave(admit=True, ask=True))
        if outcome.admit:
            await self._lines.admit(access, asked.limit, self.farthest(asked.queue) + 1)
            outcome = await self._try(access, asked, Leave(admit=False, ask=True))
        if outcome.short:
            shrunk = outcome.shrunk
            await shares.ask(access, asked.queue, asked.request.runner, outcome.short)
            outcome = await self._try(access, asked, Leave(admit=False, ask=False))
            outcome = msgspec.structs.replace(outcome, shrunk=shrunk or outcome.shrunk)
        return outcome

    async def _try(self, access: Access, asked: Asked, leave: Leave) -> Outcome:
        at = (asked.queue, asked.request.runner)
        self.openings.forget(asked.queue)
        # If the answer does not come, nobody knows what was spent.
        grant = self._grants.pop(at, None)
        visit = Visit(self._recall, asked, grant, leave, since=self._lines.since([asked.queue]))
        try:
            outcome = await access.write(visit.claim)
        except BaseException:
            self._recall.doubt(*at)
            raise
        self._recall.note_taken(*at, len(outcome.rows))
        if outcome.grant is not None:
            self._grants[at] = outcome.grant
        if (terms := visit.terms) is not None:
            self._lines.note([asked.queue], [asked.queue] if terms.marked else [], terms.behind)
            if outcome.wait is not None:
                self.openings.note(asked.queue, outcome.now, outcome.wait, terms.rate_limit)
            if not outcome.short and not outcome.admit:
                self._recall.cursors(asked.queue).end(outcome.rows, fair=terms.fair, flowing=outcome.found)
                self._recall.turns(asked.queue).took(outcome.rows, terms.weights)
        return outcome

    def farthest(self, queue: str) -> Micros:
        """How far the claims have come there, in any place."""
        return self._recall.cursors(queue).farthest


def claimed(row: Any) -> Claimed:
    """A job that was taken."""
    return Claimed(*row[:_FIELDS])
