"""Which versions are at work, and whether their SQLite is one of those that can damage a file."""

import platform
import sqlite3
from collections.abc import Iterator

import apsw

from windlass.store.examination import Finding, note, ok, problem
from windlass.version import __version__

FIRST_AFFECTED, LAST_AFFECTED = (3, 7, 0), (3, 51, 2)
"""SQLite versions that can corrupt a write-ahead log which several connections write."""


def check_versions(library: str | None = None, stdlib: str = sqlite3.sqlite_version) -> Iterator[Finding]:
    """Ours, and Python's own: other programs may use that one on the same file."""
    library = library or apsw.sqlite_lib_version()
    running = (
        f"Windlass {__version__}, Python {platform.python_version()}, apsw {apsw.apsw_version()}, SQLite {library}"
    )
    if affected(library):
        yield problem(
            "versions",
            f"{running}: SQLite 3.7.0 to 3.51.2 can corrupt a database that several processes write",
            "pip install --upgrade apsw (3.51.3 or newer brings a sound SQLite)",
        )
    else:
        yield ok("versions", running)
    if affected(stdlib):
        yield note(
            "versions",
            f"the sqlite3 module of this Python is SQLite {stdlib}, one of those that can corrupt a database "
            "written by several processes; Windlass does not use it",
            "let no other program write this file with it while workers run",
        )


def affected(version: str) -> bool:
    """Whether a version has the fault."""
    number = tuple(int(part) for part in version.split(".")[:3])
    return FIRST_AFFECTED <= number <= LAST_AFFECTED
