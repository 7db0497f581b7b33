"""What a store brings to the bench: empty stores, its bare loops, and what only its own driver can tell.

A further store joins by writing one class with these methods. The bare loops are what the driver can do with
nothing of ours on top, durable, with history: the denominators.
"""

from typing import Protocol

import msgspec


class Span(msgspec.Struct, frozen=True):
    """A drain as the store recorded it: from the first claim to the last durable completion, on its own clock."""

    jobs: int
    first_claim: float
    last_finish: float

    @property
    def rate(self) -> float:
        """Jobs per second."""
        return self.jobs / (self.last_finish - self.first_claim)


class BareDrain(msgspec.Struct, frozen=True):
    """A bare loop's run: jobs per second, and the processor seconds per job that it took."""

    rate: float
    cpu: float


class Yardstick(Protocol):
    """One kind of store, as the bench needs it."""

    def facts(self) -> dict[str, str]:
        """Versions, file system and settings: what a reader must know to judge the figures."""

    def fresh(self) -> str:
        """The address of a new, empty store."""

    def drop(self, address: str) -> None:
        """Remove a store that `fresh` gave, and all that belongs to it."""

    def bare_drain(self, jobs: int) -> BareDrain:
        """Insert jobs, then claim and complete them in batches, payload decoded, history kept."""

    def bare_bulk(self, jobs: int, *, with_making: bool) -> float:
        """Jobs per second of the driver's bulk insert; with the making of ids and rows, or without."""

    def bare_commits(self, jobs: int) -> float:
        """Jobs per second when every job is inserted by a durable commit of its own."""

    def span(self, address: str) -> Span:
        """What a drain looks like in the store's history."""

    def finishes(self, address: str) -> list[tuple[float, int]]:
        """How many jobs were finished in each tenth of a second: (its end, jobs), in order."""

    def fill_history(self, address: str, jobs: int) -> None:
        """Put so many completed jobs there directly, since draining them would take too long."""
