"""Ruled claims: from queues with limits, with rates, or with tenants who take turns."""

from collections.abc import Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.core.toll import Fare
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.mend import json_of
from windlass.store.sqlite.recall import Recall
from windlass.store.sqlite.terms import Terms
from windlass.store.sqlite.tolls import to_fare, tokens, toll

FAR = 10
"""A limit is far if it leaves room for so many claims like this one: then jobs may be claimed ahead."""
HANDS_FULL: Micros = 20_000
"""For so long a runner that could only have claimed ahead need not ask again: by then it may have a free slot."""
MOST_ASIDE = 1000
"""No more step aside in one claim, so that it ends."""


class Ruled:
    """One queue's part of a claim, under its terms."""

    def __init__(self, db: Db, values: dict[str, Any], terms: Terms, recall: Recall) -> None:
        """`values` are those of claim.sql."""
        self.db = db
        self.values = values
        self.terms = terms
        self.recall = recall
        self.queue: str = values["queue"]
        self.left: int = values["limit"]
        """How many more may be taken."""
        self.taken: list[JobId] = []
        self._aside = 0

    def bound(self, request: ClaimRequest, taken: int) -> int:
        """How many may be taken: what the limits leave, and nothing ahead where one is near.

        `taken` were taken from other queues.
        """
        near = False
        if self.terms.max_concurrency is not None:
            ((running,),) = self.db.rows("count_running", {"queue": self.queue})
            room = max(0, self.terms.max_concurrency - running)
            near = room < FAR * request.limit
            self.left = min(self.left, room)
        if self.terms.rate is not None:
            found = tokens(self.db, self.queue, self.terms.rate).tokens
            near = near or found < FAR * request.limit
            # If there are none it tries all the same: that tells until when.
            self.left = min(self.left, max(1, found))
        if near and request.free is not None and self.left > request.free - taken:
            self.left = max(0, request.free - taken)
            if not self.left:
                self.recall.shut(self.queue, self.values["now"] + HANDS_FULL, self.terms)
        return self.left

    def take_in_line(self) -> None:
        """In the order of the line, as long as they can pay."""
        more = True
        while more and self.left:
            listed = json_of(self.db, "fares", self.values | {"limit": self.left})
            more = len(listed) == self.left
            self.pay([to_fare(row) for row in listed])

    def pay(self, fares: Sequence[Fare]) -> set[JobId]:
        """They start if they can pay: who does. Once the queue has nothing left, nobody does any more."""
        if self.terms.rate is None and not any(fare.rate for fare in fares):
            return self.take([fare.id for fare in fares])
        verdict = toll(self.db, self.queue, self.terms.rate, fares, self.values["now"])
        paid = self.take(verdict.paid)
        self._aside += len(verdict.aside)
        if verdict.until is not None:
            self.recall.shut(self.queue, verdict.until, self.terms)
        if verdict.until is not None or self._aside >= MOST_ASIDE:
            self.left = 0
        return paid

    @property
    def free(self) -> bool:
        """Whether no start costs anything here."""
        return self.terms.rate is None and not self.terms.rated

    def take(self, ids: Sequence[JobId]) -> set[JobId]:
        """They start: all of them."""
        if ids:
            self.db.run("take", self.values | {"ids": array(ids)})
            self.taken += ids
            self.left -= len(ids)
        return set(ids)
