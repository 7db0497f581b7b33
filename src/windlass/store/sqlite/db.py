"""What a verb of this store works with: the connection, the clocks, the proofs of life, and its own SQL."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from windlass.core.moments import Micros
from windlass.core.status import Status
from windlass.store.clock import Clock
from windlass.store.sqlite.connection import Statements, Values
from windlass.store.sqlite.life import Vouchers
from windlass.store.sqlite.query import sql


class Db:
    """One verb's view of the database, inside a transaction that the lane or the caller opened."""

    def __init__(self, connection: Statements, clock: Clock, vouchers: Vouchers) -> None:
        self._connection = connection
        self.clock = clock
        self.vouchers = vouchers

    @property
    def now(self) -> Micros:
        """The store's wall clock."""
        return self.clock.wall()

    def rows(self, name: str, values: Values = ()) -> list[Any]:
        """The rows of a named statement."""
        return self._connection.rows(sql(name), values)

    def run(self, name: str, values: Values = ()) -> int:
        """Execute a named statement; how many rows it changed."""
        return self._connection.run(sql(name), values)

    def run_many(self, name: str, values: Sequence[Values]) -> None:
        """Execute a named statement once per set of values."""
        self._connection.run_many(sql(name), values)

    def select(self, text: str, values: Values = ()) -> list[Any]:
        """The rows of a statement put together from constants (only `filters` does that)."""
        return self._connection.rows(text, values)

    def savepoint(self, name: str) -> None:
        """From here one can roll back without ending the transaction."""
        self._connection.run(f"SAVEPOINT {name}")

    def roll_back(self, name: str) -> None:
        """As if nothing had been done since the savepoint."""
        self._connection.run(f"ROLLBACK TO {name}")
        self.release(name)

    def release(self, name: str) -> None:
        """What was done since the savepoint stands with the rest of the transaction."""
        self._connection.run(f"RELEASE {name}")

    def tally(self, queue: str, status: Status | str, change: int) -> None:
        """Keep the count of finished jobs true; called wherever one enters or leaves history."""
        self.run("tally", {"queue": queue, "status": str(status), "change": change})


def array(values: Iterable[Any]) -> str:
    """Many values as one parameter: statements unfold it with json_each."""
    return msgspec.json.encode(list(values)).decode()
