"""When queues whose rate limited claims of this process have tokens again.

Claims are not tried before that, and waiters are woken then. Kept by the server's clock for checks, and by the
machine's for waiting; it may be lost.
"""

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.store.clock import since_boot

LONGEST: Micros = SECOND
"""After this a claim is tried again: a cheaper job may have been enqueued."""


class _Opening(msgspec.Struct, frozen=True):
    at: Micros
    boot: Micros
    rate: str | None


class RateWaits:
    """The rate waits of one process."""

    def __init__(self) -> None:
        self._at: dict[str, _Opening] = {}

    def note(self, queue: str, now: Micros, wait: Micros, rate: str | None) -> None:
        """While its rate is unchanged, claims from the queue are useless for this long."""
        wait = min(wait, LONGEST)
        self._at[queue] = _Opening(now + wait, since_boot() + wait, rate)

    def forget(self, queue: str) -> None:
        """A claim is about to be tried."""
        self._at.pop(queue, None)

    def is_shut(self, queue: str, now: Micros, rate: str | None) -> bool:
        """Whether a claim would be useless."""
        opening = self._at.get(queue)
        return opening is not None and opening.rate == rate and opening.at - LONGEST <= now < opening.at

    def next_in(self) -> Micros | None:
        """How long until the next; None: no queue waits."""
        first = min((opening.boot for opening in self._at.values()), default=None)
        return None if first is None else max(0, first - since_boot())

    def tell(self) -> None:
        """Forget the queues that have tokens again."""
        now = since_boot()
        self._at = {queue: opening for queue, opening in self._at.items() if opening.boot > now}
