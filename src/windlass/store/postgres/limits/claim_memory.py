"""What a process remembers of limited queues between its claims. Only a cache."""

from windlass.store.postgres.limits.cursors import Cursors
from windlass.store.postgres.limits.fairness import FairTurns


class ClaimMemory:
    """By queue: the cursors, the fair turns, and upper bounds of how many jobs runners hold."""

    def __init__(self) -> None:
        self._cursors: dict[str, Cursors] = {}
        self._turns: dict[str, FairTurns] = {}
        self._oldest: dict[tuple[str, str], int] = {}
        self._held: dict[tuple[str, str], int] = {}

    def cursors(self, queue: str) -> Cursors:
        """The cursors of a queue."""
        return self._cursors.setdefault(queue, Cursors())

    def turns(self, queue: str) -> FairTurns:
        """The fair turns of a queue."""
        return self._turns.setdefault(queue, FairTurns())

    def oldest(self, queue: str, runner: str) -> int:
        """The lowest claim number of this runner that has jobs of this queue."""
        return self._oldest.get((queue, runner), 0)

    def holds(self, queue: str, runner: str) -> int | None:
        """An upper bound of how many jobs the runner holds: the last count, and all that was claimed since."""
        return self._held.get((queue, runner))

    def note_held(self, queue: str, runner: str, held: int, oldest: int) -> None:
        """Record a count of what the runner holds, and its lowest claim number with jobs."""
        self._oldest = {at: n for at, n in self._oldest.items() if at[1] == runner}
        self._oldest[queue, runner] = oldest
        self._held[queue, runner] = held

    def note_taken(self, queue: str, runner: str, jobs: int) -> None:
        """Add claimed jobs to the count."""
        if (queue, runner) in self._held:
            self._held[queue, runner] += jobs

    def doubt(self, queue: str, runner: str) -> None:
        """Forget the count, because the outcome of a claim is unknown."""
        self._held.pop((queue, runner), None)
