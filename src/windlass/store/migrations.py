"""Numbered, forward-only migrations: the files of a store, and which unknown ones this Windlass accepts."""

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from windlass.errors import SchemaMismatch


class Migration(msgspec.Struct, frozen=True):
    """One numbered step of the schema."""

    number: int
    name: str
    text: str
    breaking: bool
    """Whether code that does not know it cannot work with its result."""


_BREAKING = re.compile(r"^-- breaking: (yes|no)$", re.MULTILINE)


@cache
def migrations_of(package: str, profile: str = "") -> list[Migration]:
    """Every step in the folder `migrations` of a store's package, or in that of a profile there, in order.

    The part of a step that all profiles share is in `shared`, under the same number, and comes last.
    """
    root = resources.files(package).joinpath("migrations")
    shared = _texts(root.joinpath("shared"))
    return [
        _migration(name, "\n".join([text, *(same for other, same in shared if other[:4] == name[:4])]))
        for name, text in _texts(root.joinpath(profile))
    ]


def _texts(folder: Traversable) -> list[tuple[str, str]]:
    if not folder.is_dir():
        return []
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name, folder.joinpath(name).read_text()) for name in files]


def _migration(name: str, text: str) -> Migration:
    said = _BREAKING.search(text)
    if said is None:
        raise ValueError(f"{name} does not say whether it is breaking")
    return Migration(int(name[:4]), name.removesuffix(".sql"), text, said[1] == "yes")


def check_newer(where: str, newer: Iterable[tuple[str, bool]]) -> None:
    """Refuse a breaking step that this version does not know; additive ones do no harm."""
    for name, breaking in newer:
        if breaking:
            raise SchemaMismatch(
                f"{where} has step {name}, which this version of Windlass cannot work with: "
                "upgrade Windlass (pip install --upgrade windlass)"
            )
