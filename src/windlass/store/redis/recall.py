"""What the claims of one process recall. Nothing of it need be kept: who knows nothing asks once more."""

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.openings import Openings

MOST_RUNNERS = 1000
RULED_FOR: Micros = SECOND
"""For so long a queue that was not plain is taken for one that is not."""


class Recall:
    """Which queues are not plain, when they open, and which claims were asked for before."""

    def __init__(self) -> None:
        self.openings = Openings()
        self._ruled: dict[str, Micros] = {}
        self._asked: dict[str, int] = {}
        self.gates: dict[str, str] = {}
        """How far the buckets of a queue were looked through."""

    def is_ruled(self, queue: str) -> bool:
        """Whether it was not plain a moment ago."""
        until = self._ruled.get(queue)
        return until is not None and since_boot() < until

    def note_ruled(self, queue: str) -> None:
        """It is not plain."""
        self._ruled[queue] = since_boot() + RULED_FOR

    def ask(self, runner: str, claim: int) -> bool:
        """Whether nobody can have asked for this claim before: numbers of claims only grow, in one process."""
        before = self._asked.get(runner)
        if len(self._asked) > MOST_RUNNERS:
            self._asked.clear()
        self._asked[runner] = claim if before is None else max(claim, before)
        return before is not None and claim > before
