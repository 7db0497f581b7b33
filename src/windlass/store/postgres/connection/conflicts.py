"""Conflicts of one process: calls repeated after a serialization failure or a deadlock, and claims that waited."""

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from windlass.store.postgres.connection.access import Access

MINUTE = 60_000_000


class Conflicts:
    """The counts of conflicts since the process started, and what of them is stored already."""

    def __init__(self) -> None:
        self.repeated = 0
        self.lock_waits = 0
        """How often a claim had to wait for another one's lock."""
        self.on_conflict: Callable[[], None] = _no_op
        self._process = str(uuid4())
        self._kept = (0, 0)

    def add(self) -> None:
        """Count a repeated call."""
        self.repeated += 1
        self.on_conflict()

    async def keep(self, access: "Access") -> None:
        """Store what was counted since the last call, for `windlass doctor`."""
        now = (self.repeated, self.lock_waits)
        if now == self._kept:
            return
        values = {
            "process": self._process,
            "minute": MINUTE,
            "conflicts": now[0] - self._kept[0],
            "lock_waits": now[1] - self._kept[1],
        }
        # Set before the call, whose own conflicts are left to the next one.
        self._kept = now
        await access.once(lambda db: db.run("add_conflicts", values))


def _no_op() -> None:
    """No-op."""
