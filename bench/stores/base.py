"""What a store brings to the bench: empty stores, its bare loops, and what only its own driver can tell.

A further store joins by writing one class with these methods. The bare loops are what the driver can do with
nothing of ours on top, durable, with history: the denominators.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from bench.peer_entry import PeerEntry
from bench.targets import Targets
from windlass.store.contract import Store
from windlass.store.samples import SampleTables


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


class Counters(msgspec.Struct, frozen=True):
    """What a server counts for all clients; a figure is the difference of two readings."""

    commits: int
    log_bytes: int
    """Written to its write-ahead log."""


class Pooler(msgspec.Struct, frozen=True, kw_only=True):
    """A connection pooler in front of the server, if there is one."""

    route: Callable[[str], str] | None = None
    """From a store's address to the one through it."""
    skip_reason: str = ""


class StoreBench(Protocol):
    """One kind of store, as the bench needs it."""

    targets: Targets

    @property
    def peer_entries(self) -> tuple[PeerEntry, ...]:
        """Its peers."""

    def facts(self) -> dict[str, str]:
        """Versions, file system and settings: what a reader must know to judge the figures."""

    def fresh(self) -> str:
        """The address of a new, empty store."""

    def drop(self, address: str) -> None:
        """Remove a store that `fresh` gave, and all that belongs to it."""

    def bare_drain(self, jobs: int) -> BareDrain:
        """Insert jobs, then claim and complete them in batches, history kept."""

    def bare_together(self, jobs: int) -> float | None:
        """The rate of two bare loops together on the same tables; None if only one can write at a time."""

    def bare_wake(self, jobs: int) -> list[float] | None:
        """Milliseconds from enqueue to claim of a notified process; None if the store cannot notify."""

    def bare_bulk(self, jobs: int, *, with_making: bool) -> float:
        """Jobs per second of the driver's bulk insert, with or without the creation of ids and rows."""

    def bare_commits(self, jobs: int) -> float:
        """Jobs per second when every job is inserted by a durable commit of its own."""

    def span(self, address: str) -> Span:
        """A drain as the store's history recorded it."""

    def finishes(self, address: str) -> list[tuple[float, int]]:
        """How many jobs were finished in each hundredth of a second: (its end, jobs), in order."""

    def fill_history(self, address: str, jobs: int) -> None:
        """Insert completed jobs directly, since draining them would take too long."""

    def repeat_meters(self, address: str, intervals: int) -> None:
        """Copy the meters of the newest interval into as many intervals before it."""

    def sample_tables(self, store: Store) -> SampleTables:
        """Where the samples of an open store are kept."""

    def hold_snapshot(self, address: str) -> AbstractContextManager[None]:
        """Hold a snapshot open in another connection, like a long report."""

    def pooler(self) -> AbstractContextManager[Pooler]:
        """A pooler in front of all stores that `fresh` gives."""

    def counters(self, address: str) -> Counters | None:
        """The server's counters; None if there is no server."""

    def occupied(self, address: str) -> int:
        """Bytes that all data of a store take, in memory or on disk (`Targets.kept`)."""

    def longest_call(self) -> float | None:
        """Milliseconds of the longest call since the last read, by the server's log; None without such a log."""
