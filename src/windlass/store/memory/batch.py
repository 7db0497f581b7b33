"""Enqueues in a caller's transaction, which are kept until it ends."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

from windlass.store.sqlite.db import Db

Work = Callable[[Db], Any]


class TransactionState(Enum):
    """The last known state of the transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"


class Caller(Protocol):
    """A caller's connection, in a transaction."""

    @property
    def owner(self) -> object: ...

    async def join(self, batch: "Batch") -> None:
        """Tie the batch to the end of the transaction."""


class Batch:
    """An enqueue that waits for the commit of its caller."""

    def __init__(self, work: Work, owner: object) -> None:
        self.work = work
        self.owner = owner
        """The caller's connection, whose later enqueues build on this one."""
        self.state = TransactionState.OPEN
        self.update: Callable[[], None] = lambda: None
        """Finds out the state of the transaction, if the library does not report it."""

    def commit(self) -> None:
        if self.state is TransactionState.OPEN:
            self.state = TransactionState.COMMITTED

    def roll_back(self) -> None:
        if self.state is TransactionState.OPEN:
            self.state = TransactionState.ROLLED_BACK
