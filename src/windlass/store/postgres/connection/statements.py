"""The SQL of this store, for its drivers.

In a statement `windlass.` stands for the schema, `:name` for a parameter, and `:now` for the store's clock.
"""

import re
from collections.abc import Callable

import msgspec

from windlass.store.sql.statements import statements_of

SERVER_CLOCK = "(SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"
"""In a subselect, so that it is evaluated once per statement and not per row."""

_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")
_SCHEMA = re.compile(r"\bwindlass\.")


class Statement(msgspec.Struct, frozen=True):
    """A statement for a driver, and the names of its parameters in order."""

    text: str
    names: tuple[str, ...]


def sql(name: str) -> str:
    """The text of a statement."""
    return statements_of("postgres")[name]


def in_schema(text: str, schema: str) -> str:
    """The text for one schema, quoted: its name may be a keyword."""
    return _SCHEMA.sub(f'"{schema}".', text)


def numbered(text: str, *, server_clock: bool) -> Statement:
    """For asyncpg: $1, $2, …"""
    names: dict[str, int] = {}

    def place(name: str) -> str:
        return f"${names.setdefault(name, len(names) + 1)}"

    return Statement(_render(text, place, server_clock=server_clock), tuple(names))


def named(text: str, *, server_clock: bool) -> Statement:
    """For psycopg: %(name)s."""
    names: dict[str, None] = {}

    def place(name: str) -> str:
        names[name] = None
        return f"%({name})s"

    return Statement(_render(text.replace("%", "%%"), place, server_clock=server_clock), tuple(names))


def _render(text: str, place: Callable[[str], str], *, server_clock: bool) -> str:
    def fill(found: re.Match[str]) -> str:
        name = found[1]
        if name == "now":
            return SERVER_CLOCK if server_clock else f"{place(name)}::bigint"
        return place(name)

    return _NAME.sub(fill, text)
