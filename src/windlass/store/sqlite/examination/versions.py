"""Which versions are at work, and whether their SQLite is one of those that can damage a file."""

import platform
import sqlite3
from collections.abc import Iterator

import apsw

from windlass.store.examination import Finding, note, ok, problem, warning
from windlass.store.sqlite.drivers import Driver
from windlass.store.sqlite.versions import can_damage
from windlass.version import __version__


def check_versions(
    driver: Driver = Driver.APSW, *, library: str | None = None, stdlib: str = sqlite3.sqlite_version
) -> Iterator[Finding]:
    """Ours, and Python's own: other programs may use that one on the same file."""
    library = library or apsw.sqlite_lib_version()
    running = (
        f"Windlass {__version__}, Python {platform.python_version()}, apsw {apsw.apsw_version()}, SQLite {library}"
    )
    if driver is Driver.SQLITE3:
        yield from _with_stdlib(running, stdlib)
    elif affected(library):
        yield problem(
            "versions",
            f"{running}: SQLite 3.7.0 to 3.51.2 can corrupt a database that several processes write",
            "pip install --upgrade apsw (3.51.3 or newer brings a sound SQLite)",
        )
    else:
        yield ok("versions", running)
    if affected(stdlib) and driver is not Driver.SQLITE3:
        yield note(
            "versions",
            f"the sqlite3 module of this Python is SQLite {stdlib}, one of those that can corrupt a database "
            "written by several processes; Windlass does not use it",
            "let no other program write this file with it while workers run",
        )


def _with_stdlib(running: str, stdlib: str) -> Iterator[Finding]:
    if affected(stdlib):
        yield warning(
            "versions",
            f"{running}; driver=sqlite3 uses SQLite {stdlib}, one of those (3.7.0 to 3.51.2) that can, very rarely, "
            "corrupt a database that several connections write",
            "use a Python with SQLite 3.51.3 or newer, or the default driver where no other code opens the file",
        )
    else:
        yield ok("versions", f"{running}; driver=sqlite3 uses SQLite {stdlib}")


def affected(version: str) -> bool:
    """Whether a version has the fault."""
    return can_damage(tuple(int(part) for part in version.split(".")[:3]))
