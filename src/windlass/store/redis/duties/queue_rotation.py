"""Which queues a duty looks at: those with workers, those in which a job is due by now, and some of the others.

So a round costs the same, however many queues have no workers. When a job of a queue is due is remembered from the
last visit. That is a hint only: the other queues are visited in turn, and all of them by a new process. Jobs of a
queue without workers wait in any case; a worker that begins to serve it admits them.
"""

import time
from bisect import bisect_right
from collections.abc import Sequence

from windlass.core.moments import Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.liveness.workers import registered

MAX_OTHERS = 50
"""Queues without workers in one round: each of 3,000 is visited within a minute."""
SERVED_SECONDS = 1.0
"""How long the list of served queues is cached."""


class DutyRotation:
    """When each queue that a duty has visited has work again."""

    def __init__(self) -> None:
        self._due: dict[str, Micros | None] = {}
        """By queue: when it has work (None: none is known)."""
        self._last = ""
        """The last of the others that was visited."""

    def choose(self, names: Sequence[str], served: set[str], now: Micros) -> list[str]:
        """The queues to visit now, in the order of `names`."""
        gone = self._due.keys() - set(names)
        for name in gone:
            del self._due[name]
        chosen = {name for name in names if name in served or self._is_due(name, now)}
        others = [name for name in names if name not in chosen]
        start = bisect_right(others, self._last)
        turn = (others[start:] + others[:start])[:MAX_OTHERS]
        self._last = turn[-1] if turn else ""
        return sorted(chosen.union(turn))

    def _is_due(self, name: str, now: Micros) -> bool:
        if name not in self._due:
            return True  # never visited
        due = self._due[name]
        return due is not None and due <= now

    def note(self, name: str, due: Micros | None = None) -> None:
        """The queue was visited, and has work at this moment (None: none is known)."""
        self._due[name] = due

    def next_due(self) -> Micros | None:
        """The earliest moment that is known."""
        return min((due for due in self._due.values() if due is not None), default=None)


class QueueRotation:
    """The rotations of all duties of one process."""

    def __init__(self) -> None:
        self._rounds: dict[str, DutyRotation] = {}
        self._served: set[str] = set()
        self._ask_at = 0.0

    def of(self, duty: str) -> DutyRotation:
        """The rotation of one duty."""
        return self._rounds.setdefault(duty, DutyRotation())

    async def choose(self, access: Access, duty: str, names: Sequence[str]) -> list[str]:
        """The queues that a duty visits now: all of them, if they are few."""
        if len(names) <= MAX_OTHERS:
            return list(names)
        return self.of(duty).choose(names, await self._ask_served(access), self.now(access))

    async def take(self, access: Access, duty: str) -> list[str]:
        """The same, for a duty that cannot know when it has work."""
        chosen = await self.choose(access, duty, await access.queue_names())
        for queue in chosen:
            self.of(duty).note(queue)
        return chosen

    @staticmethod
    def now(access: Access) -> Micros:
        """A clock that runs as fast as the store's, with any origin."""
        clock = access.server.clock
        return time.monotonic_ns() // 1000 if clock is None else clock.wall()

    async def _ask_served(self, access: Access) -> set[str]:
        if time.monotonic() >= self._ask_at:
            self._served = {queue for worker in await registered(access) for queue in worker.queues}
            self._ask_at = time.monotonic() + SERVED_SECONDS
        return self._served
