"""The SQL of this store: one file per statement, read once, and made fit for a driver and a schema.

In a file `windlass.` stands for the schema, `:name` for a value, and `:now` for the store's clock.
"""

import re
from collections.abc import Callable
from functools import cache
from importlib import resources

import msgspec

SERVER_CLOCK = "(SELECT (extract(epoch FROM statement_timestamp()) * 1000000)::bigint)"
"""In a subselect, so that it is read once for a statement and not once for each of its rows."""

_NAME = re.compile(r"(?<![:\w]):([a-z_]+)")
_SCHEMA = re.compile(r"\bwindlass\.")


class Statement(msgspec.Struct, frozen=True):
    """A statement as a driver takes it, and the names of its values in their order."""

    text: str
    names: tuple[str, ...]


@cache
def sql(name: str) -> str:
    """The text of `queries/<name>.sql`, without its comment: that is for readers."""
    text = resources.files(__package__).joinpath("queries", f"{name}.sql").read_text()
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))


def in_schema(text: str, schema: str) -> str:
    """The text for the tables of one schema. In quotes: its name may be a word that means something else."""
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
