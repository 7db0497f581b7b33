"""What is enqueued in a caller's transaction, until that ends."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from windlass.store.sqlite.db import Db

Work = Callable[[Db], Any]


class Fate(Enum):
    """What is known of the transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    UNDONE = "undone"


class Caller(Protocol):
    """A caller's connection, in a transaction."""

    @property
    def owner(self) -> object: ...

    async def join(self, batch: "Batch") -> None:
        """Let the transaction decide about the batch."""


class Batch:
    """An enqueue that waits for the commit of its caller."""

    def __init__(self, work: Work, owner: object) -> None:
        self.work = work
        self.owner = owner
        """The connection, whose later enqueues build on this one."""
        self.fate = Fate.OPEN
        self.look: Callable[[], None] = lambda: None
        """Ask about the transaction, for connections that report nothing by themselves."""

    def commit(self) -> None:
        if self.fate is Fate.OPEN:
            self.fate = Fate.COMMITTED

    def undo(self) -> None:
        if self.fate is Fate.OPEN:
            self.fate = Fate.UNDONE
