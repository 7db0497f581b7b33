"""The database as a verb sees it: a connection, the clock, and statements by name.

In a statement, `windlass.` stands for the schema, `:name` for a parameter, `:now` for the time by the store's clock,
and `:horizon`, `:transaction`, `:notify` and `:skew` for expressions of the profile.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.clock import Clock
from windlass.store.postgres.connection.profile import PLAIN, Profile, for_each_bucket

SERVER_CLOCK = "(SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"
"""A subselect, so that it is evaluated once per statement, not once per row."""

Values = Mapping[str, Any]

_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")
_SCHEMA = re.compile(r"\bwindlass\.")


class Statement(msgspec.Struct, frozen=True):
    """A statement for a driver, and the names of its parameters in order."""

    text: str
    names: tuple[str, ...]


def in_schema(text: str, schema: str) -> str:
    """The text for one schema; the name is quoted, because it may be a keyword."""
    return _SCHEMA.sub(f'"{schema}".', text)


def numbered(text: str, *, server_clock: bool) -> Statement:
    """The statement for asyncpg, with $1, $2, …"""
    names: dict[str, int] = {}

    def placeholder(name: str) -> str:
        return f"${names.setdefault(name, len(names) + 1)}"

    return Statement(_render(text, placeholder, server_clock=server_clock), tuple(names))


def named(text: str, *, server_clock: bool) -> Statement:
    """The statement for psycopg, with %(name)s."""
    names: dict[str, None] = {}

    def placeholder(name: str) -> str:
        names[name] = None
        return f"%({name})s"

    return Statement(_render(text.replace("%", "%%"), placeholder, server_clock=server_clock), tuple(names))


def _render(text: str, placeholder: Callable[[str], str], *, server_clock: bool) -> str:
    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name == "now":
            return SERVER_CLOCK if server_clock else f"{placeholder(name)}::bigint"
        return placeholder(name)

    return _NAME.sub(fill, text)


_NONE: Values = {}


class Statements(Protocol):
    """A connection of the store or a caller."""

    @property
    def prepare(self) -> Callable[..., Statement]:
        """Convert a statement to the driver's parameter style."""

    async def rows(self, statement: Statement, values: Values) -> list[Any]:
        """All rows of a statement."""

    async def run(self, statement: Statement, values: Values) -> int:
        """Execute a statement; returns the number of changed rows."""


class Texts:
    """The texts of one store's statements, for its schema, clock and profile."""

    def __init__(self, schema: str, clock: Clock | None, profile: Profile = PLAIN) -> None:
        self.schema = schema
        self.clock = clock
        self.profile = profile
        self._buckets = 1
        self._named: dict[str, str] = {}
        self._known: dict[tuple[str, Callable[..., Statement]], Statement] = {}

    @property
    def buckets(self) -> int:
        """How many buckets statements read; more may be added while the process runs."""
        return self._buckets

    @buckets.setter
    def buckets(self, number: int) -> None:
        if number != self._buckets:
            self._buckets, self._named = number, {}

    def named(self, name: str, prepare: Callable[..., Statement]) -> Statement:
        """A statement by its name."""
        text = self._named.get(name)
        if text is None:
            text = self._named[name] = for_each_bucket(self.profile.statement(name), self._buckets)
        return self.made(text, prepare)

    def with_clock(self, values: Values) -> Values:
        """The values of a statement, with the time if it is not the server's."""
        return values if self.clock is None else {**values, "now": self.clock.wall()}

    def made(self, text: str, prepare: Callable[..., Statement]) -> Statement:
        """A statement by its text. The cache is bounded, because no text contains values."""
        found = self._known.get((text, prepare))
        if found is None:
            whole = self.profile.filled(in_schema(text, self.schema))
            found = self._known[text, prepare] = prepare(whole, server_clock=self.clock is None)
        return found


class Db:
    """A connection with the store's statements and clock."""

    dead_history = "windlass.history_dead"
    is_failed = "stage = 'failed'"

    def __init__(self, connection: Statements, texts: Texts) -> None:
        self._connection = connection
        self._texts = texts

    @property
    def schema(self) -> str:
        """The schema of the tables."""
        return self._texts.schema

    @property
    def profile(self) -> Profile:
        """What differs from PostgreSQL."""
        return self._texts.profile

    @property
    def buckets(self) -> int:
        """How many buckets statements read."""
        return self._texts.buckets

    @buckets.setter
    def buckets(self, number: int) -> None:
        self._texts.buckets = number

    async def now(self) -> Micros:
        """The time by the store's clock."""
        if self._texts.clock is not None:
            return self._texts.clock.wall()
        return int((await self.select("SELECT :now"))[0][0])

    async def rows(self, name: str, values: Values = _NONE) -> list[Any]:
        """The rows of a named statement."""
        statement = self._texts.named(name, self._connection.prepare)
        return await self._connection.rows(statement, self._texts.with_clock(values))

    async def run(self, name: str, values: Values = _NONE) -> int:
        """Execute a named statement; returns the number of changed rows."""
        statement = self._texts.named(name, self._connection.prepare)
        return await self._connection.run(statement, self._texts.with_clock(values))

    async def select(self, text: str, values: Values = _NONE) -> list[Any]:
        """The rows of a statement whose text is built from constants."""
        statement = self._texts.made(text, self._connection.prepare)
        return await self._connection.rows(statement, self._texts.with_clock(values))

    def by_id(self, select: str, order: str) -> str:
        """A select that merges the rows of all buckets in their order; an index on ids alone would have a hot end."""
        if not self.profile.has_buckets:
            return select
        of_bucket = select.replace(" WHERE ", " WHERE found.bucket = bucket.bucket AND ", 1)
        return (
            "SELECT part.* FROM windlass.due_watermark AS bucket "
            f"CROSS JOIN LATERAL ({of_bucket}) AS part ORDER BY part.id {order} LIMIT :limit"
        )

    def wall_time(self, expires_at: Micros) -> Micros:
        """The same moment: leases end by the server's clock."""
        return expires_at


# Many values in one text parameter, because the driver encodes an array element by element. Statements unpack them
# with `string_to_array(:ids, ',')::uuid[]`. Only values that cannot contain the separator are packed.


def pack_ids(values: Iterable[JobId]) -> str:
    """Ids, separated by commas."""
    return ",".join(values)


def pack_numbers(values: Iterable[int | None]) -> str:
    """Numbers, separated by commas; None is empty."""
    return ",".join(["" if value is None else str(value) for value in values])


def pack_texts(values: Sequence[str | None]) -> Sequence[str | None] | None:
    """Texts as an array, because they may contain the separator; None if all are None."""
    return None if values.count(None) == len(values) else values
