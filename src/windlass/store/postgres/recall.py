"""What the claims of one process recall of ruled queues. Nothing of it need be kept: who knows nothing counts."""

from windlass.store.postgres.cursors import Cursors
from windlass.store.postgres.fair import Turns


class Recall:
    """How far they have come, whose turn it is, and how much each runner holds at most."""

    def __init__(self) -> None:
        self._cursors: dict[str, Cursors] = {}
        self._turns: dict[str, Turns] = {}
        self._oldest: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}

    def cursors(self, queue: str) -> Cursors:
        """How far they have come there."""
        return self._cursors.setdefault(queue, Cursors())

    def turns(self, queue: str) -> Turns:
        """Whose turn it is there."""
        return self._turns.setdefault(queue, Turns())

    def oldest(self, queue: str, runner: str) -> int:
        """No claim of this runner with a lower number has jobs of this queue."""
        return self._oldest.get((queue, runner), 0)

    def holds(self, queue: str, runner: str) -> int | None:
        """No more than this: what was counted, and all that was taken since."""
        return self._held.get((queue, runner))

    def note_held(self, queue: str, runner: str, held: int, oldest: int) -> None:
        """So many were counted. Numbers of claims only grow."""
        self._oldest = {at: n for at, n in self._oldest.items() if at[1] == runner}
        self._oldest[queue, runner] = oldest
        self._held[queue, runner] = held

    def note_taken(self, queue: str, runner: str, jobs: int) -> None:
        """So many more, if it was counted before."""
        if (queue, runner) in self._held:
            self._held[queue, runner] += jobs

    def doubt(self, queue: str, runner: str) -> None:
        """An answer did not come: how much it holds must be counted."""
        self._held.pop((queue, runner), None)
