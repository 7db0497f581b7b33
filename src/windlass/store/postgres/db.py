"""What a verb of this store works with: its connection, the clock, and its own SQL."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from windlass.core.moments import Micros
from windlass.store.clock import Clock
from windlass.store.postgres.query import Statement, in_schema, sql

Values = Mapping[str, Any]
_NONE: Values = {}


class Statements(Protocol):
    """A connection, ours or a caller's."""

    @property
    def prepare(self) -> Callable[..., Statement]:
        """Make a text fit for the driver."""

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute; how many rows it changed."""


class Texts:
    """The statements of one store: for its schema, with the server's clock or one that was brought along."""

    def __init__(self, schema: str, clock: Clock | None) -> None:
        self.schema = schema
        self.clock = clock
        self._known: dict[tuple[str, Callable[..., Statement]], Statement] = {}

    def named(self, name: str, prepare: Callable[..., Statement]) -> Statement:
        """A statement by its name."""
        return self.made(sql(name), prepare)

    def made(self, text: str, prepare: Callable[..., Statement]) -> Statement:
        """A statement by its text; there are only so many, because none has values in it."""
        found = self._known.get((text, prepare))
        if found is None:
            made = prepare(in_schema(text, self.schema), server_clock=self.clock is None)
            found = self._known[text, prepare] = made
        return found


class Db:
    """One verb's view of the database."""

    def __init__(self, connection: Statements, texts: Texts) -> None:
        self._connection = connection
        self._texts = texts

    @property
    def schema(self) -> str:
        """Where the tables are."""
        return self._texts.schema

    async def now(self) -> Micros:
        """The store's clock."""
        if self._texts.clock is not None:
            return self._texts.clock.wall()
        return int((await self.select("SELECT :now"))[0][0])

    async def rows(self, name: str, values: Values = _NONE) -> list[Any]:
        """The rows of a named statement."""
        statement = self._texts.named(name, self._connection.prepare)
        return await self._connection.rows(statement, self._with_clock(values))

    async def run(self, name: str, values: Values = _NONE) -> int:
        """Execute a named statement; how many rows it changed."""
        statement = self._texts.named(name, self._connection.prepare)
        return await self._connection.run(statement, self._with_clock(values))

    async def select(self, text: str, values: Values = _NONE) -> list[Any]:
        """The rows of a statement put together from constants (only `look` and `prune` do that)."""
        statement = self._texts.made(text, self._connection.prepare)
        return await self._connection.rows(statement, self._with_clock(values))

    def _with_clock(self, values: Values) -> Values:
        clock = self._texts.clock
        return values if clock is None else {**values, "now": clock.wall()}
