"""Openings: when queues that kept claims of this process short have tokens again.

So nobody who waits need ask before, and whoever waits is called then. It is told by the server's clock, for looks,
and by that of the machine, for waiting. Nothing of it need be kept.
"""

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

LONGEST: Micros = SECOND
"""Then one looks again: a cheaper job may have come that can pay."""


class _Opening(msgspec.Struct, frozen=True):
    at: Micros
    boot: Micros
    rate: str | None


class Openings:
    """Of one process."""

    def __init__(self) -> None:
        self._at: dict[str, _Opening] = {}

    def note(self, queue: str, now: Micros, wait: Micros, rate: str | None) -> None:
        """As long as its rate stays as it is, a claim would be in vain for so long."""
        wait = min(wait, LONGEST)
        self._at[queue] = _Opening(now + wait, since_boot() + wait, rate)

    def forget(self, queue: str) -> None:
        """A claim is about to find out."""
        self._at.pop(queue, None)

    def is_shut(self, queue: str, now: Micros, rate: str | None) -> bool:
        """Whether a claim would be in vain."""
        opening = self._at.get(queue)
        return opening is not None and opening.rate == rate and opening.at - LONGEST <= now < opening.at

    def next_in(self) -> Micros | None:
        """How long until the next; None: nobody waits for one."""
        first = min((opening.boot for opening in self._at.values()), default=None)
        return None if first is None else max(0, first - since_boot())

    def tell(self) -> None:
        """Whoever waited was called for those that have opened."""
        now = since_boot()
        self._at = {queue: opening for queue, opening in self._at.items() if opening.boot > now}
