"""What one process remembers between claims. Without it a claim takes one more call."""

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot
from windlass.store.rate_waits import RateWaits

MAX_RUNNERS = 1000
LIMITED_FOR: Micros = SECOND
"""How long a queue counts as limited after it was found to be."""


class ClaimMemory:
    """Which queues are not plain, when they open, and which claims were asked for before."""

    def __init__(self) -> None:
        self.rate_waits = RateWaits()
        self._ruled: dict[str, Micros] = {}
        self._asked: dict[str, int] = {}
        self.gates: dict[str, str] = {}
        """How far the buckets of a queue were looked through."""

    def is_limited(self, queue: str) -> bool:
        """Whether it was not plain a moment ago."""
        until = self._ruled.get(queue)
        return until is not None and since_boot() < until

    def note_limited(self, queue: str) -> None:
        """It is not plain."""
        self._ruled[queue] = since_boot() + LIMITED_FOR

    def ask(self, runner: str, claim: int) -> bool:
        """Whether this claim is new: numbers of claims only grow, in one process."""
        before = self._asked.get(runner)
        if len(self._asked) > MAX_RUNNERS:
            self._asked.clear()
        self._asked[runner] = claim if before is None else max(claim, before)
        return before is not None and claim > before
