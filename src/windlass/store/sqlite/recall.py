"""What the claims of one process recall: whose turn it is in fair queues, and which queues had to turn them away.

Nothing of it need be kept: a process that knows none of it begins evenly, and looks once in vain.
"""

import msgspec

from windlass.core.fairness import Standing
from windlass.core.moments import SECOND, Micros
from windlass.store.clock import Clock
from windlass.store.sqlite.terms import Terms

LONGEST_SHUT: Micros = SECOND
"""Then one looks again: a cheaper job may have come that can pay."""
MOST_ROUNDS = 1000


class Round(msgspec.Struct):
    """The turns of tenants at one priority of a queue, and the tenant up to whom they were listed."""

    standing: Standing = msgspec.field(default_factory=Standing)
    after: str = ""


class Recall:
    """One for each store object; claims write it, and those who wait for work read it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rounds: dict[tuple[str, int], Round] = {}
        self._shut: dict[str, tuple[Micros, Terms]] = {}

    def round(self, queue: str, urgency: int) -> Round:
        """Whose turn it is there."""
        if len(self._rounds) > MOST_ROUNDS:
            self._rounds.clear()
        return self._rounds.setdefault((queue, urgency), Round())

    def shut(self, queue: str, until: Micros, terms: Terms) -> None:
        """A claim from this queue would be in vain until then, as long as its terms stay as they are."""
        self._shut[queue] = min(until, self._clock.wall() + LONGEST_SHUT), terms

    def is_shut(self, queue: str, terms: Terms) -> bool:
        """Whether a claim would be in vain now."""
        until, found = self._shut.get(queue, (0, None))
        return found == terms and self._lies_ahead(until)

    def next_opening(self) -> Micros | None:
        """How long until the next of them opens; None: none is shut. What is over is forgotten."""
        for queue, (until, _) in list(self._shut.items()):
            if not self._lies_ahead(until):
                self._shut.pop(queue, None)
        now = self._clock.wall()
        return min((max(0, until - now) for until, _ in list(self._shut.values())), default=None)

    def _lies_ahead(self, until: Micros) -> bool:
        """Not for ever, if the clock was set back meanwhile."""
        return 0 < until - self._clock.wall() <= LONGEST_SHUT
