"""Numbered, forward-only migrations: the files that a store brings, and which of them this Windlass knows."""

import re
from functools import cache
from importlib import resources

import msgspec

from windlass.errors import SchemaMismatch


class Migration(msgspec.Struct, frozen=True):
    """One numbered step of the schema."""

    number: int
    name: str
    text: str
    breaking: bool
    """Whether code that does not know it cannot work with what it leaves."""


_BREAKING = re.compile(r"^-- breaking: (yes|no)$", re.MULTILINE)


@cache
def migrations_of(package: str) -> list[Migration]:
    """Every step in the folder `migrations` of a store's package, in order."""
    folder = resources.files(package).joinpath("migrations")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_migration(name, folder.joinpath(name).read_text()) for name in files]


def _migration(name: str, text: str) -> Migration:
    said = _BREAKING.search(text)
    if said is None:
        raise ValueError(f"{name} does not say whether it is breaking")
    return Migration(int(name[:4]), name.removesuffix(".sql"), text, said[1] == "yes")


def check_version(found: int, newest: int) -> None:
    """We would not know what the columns of a newer schema mean."""
    if found > newest:
        raise SchemaMismatch(
            f"the database has schema {found}, this Windlass knows up to {newest}: upgrade Windlass "
            "(pip install --upgrade windlass)"
        )
