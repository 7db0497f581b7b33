"""When queues whose rate limited claims of this process have tokens again.

Claims are not tried before that, and waiters are woken then. Checks use the server's clock, waits the machine's.
Losing this state costs a claim that returns nothing.
"""

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

MAX_WAIT: Micros = SECOND
"""After this a claim is tried again: a cheaper job may have been enqueued."""


class _Wait(msgspec.Struct, frozen=True):
    at: Micros
    boot: Micros
    rate: str | None


class RateWaits:
    """The rate waits of one process."""

    def __init__(self) -> None:
        self._at: dict[str, _Wait] = {}

    def note(self, queue: str, now: Micros, wait: Micros, rate: str | None) -> None:
        """While its rate is unchanged, claims from the queue are useless for this long."""
        wait = min(wait, MAX_WAIT)
        self._at[queue] = _Wait(now + wait, since_boot() + wait, rate)

    def forget(self, queue: str) -> None:
        """Drop the wait of a queue, before a claim from it."""
        self._at.pop(queue, None)

    def is_shut(self, queue: str, now: Micros, rate: str | None) -> bool:
        """Whether a claim would be useless."""
        wait_end = self._at.get(queue)
        return wait_end is not None and wait_end.rate == rate and wait_end.at - MAX_WAIT <= now < wait_end.at

    def next_in(self) -> Micros | None:
        """How long until the first queue has tokens; None: no queue waits."""
        first = min((wait_end.boot for wait_end in self._at.values()), default=None)
        return None if first is None else max(0, first - since_boot())

    def tell(self) -> None:
        """Forget the queues that have tokens again."""
        now = since_boot()
        self._at = {queue: wait_end for queue, wait_end in self._at.items() if wait_end.boot > now}
