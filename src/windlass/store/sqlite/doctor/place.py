"""Checks around the file: versions, durability, file system, free space."""

import os
import platform
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import apsw

from windlass.store.doctor import Finding, note, ok, problem, size, warning
from windlass.store.sqlite.address import DURABILITY, Address, Driver
from windlass.store.sqlite.connection.files import NETWORK, file_system_of
from windlass.store.sqlite.connection.stdlib_driver import can_corrupt
from windlass.version import __version__

MOUNTS = Path("/proc/self/mountinfo")
MEMORY = frozenset({"tmpfs", "ramfs"})
LAYERED = frozenset({"overlay", "aufs"})
LOW_SPACE_BYTES = 1024**3
MIN_SPACE_BYTES = 64 * 1024**2
"""As much as the write-ahead log alone may take."""


def check_durability(address: Address) -> Iterator[Finding]:
    """The durability of this address; other processes may use another one on the same file."""
    setting = f"synchronous={DURABILITY[address.durability]}"
    if address.durability == "full":
        yield ok("durability", f"an accepted job is flushed to the disk ({setting})")
    else:
        yield warning(
            "durability",
            f"?durability={address.durability} ({setting}): a power cut may lose the jobs accepted last, "
            "the crash of a process does not",
            "leave the option away to have every accepted job flushed",
        )


def check_file_system(address: Address, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """Whether the file system supports locks and keeps files."""
    folder = address.path.parent
    kind = file_system_of(folder, mounts)
    if kind is None:
        yield note("file system", "this system does not tell its kind; SQLite needs a local disk")
    elif kind in NETWORK and address.allow_network_fs:
        yield warning(
            "file system",
            f"{folder} is on {kind}, a network file system, and ?allow_network_fs=true lets that pass",
            "put the file on a local disk: SQLite loses data here",
        )
    elif kind in NETWORK:
        yield problem(
            "file system",
            f"{folder} is on {kind}, a network file system, where SQLite loses data; Windlass refuses it",
            "put the file on a local disk, or use PostgreSQL for several machines",
        )
    elif kind in MEMORY:
        yield warning(
            "file system",
            f"{folder} is on {kind}: it is memory, and every job is gone when the machine stops",
            "put the file on a disk",
        )
    elif kind in LAYERED:
        yield warning(
            "file system",
            f"{folder} is on {kind}, the layer of a container: the file goes when the container is removed",
            "put the file on a volume that outlives the container",
        )
    else:
        yield ok("file system", f"{kind}, local")


def check_room(folder: Path) -> Iterator[Finding]:
    """Free space; without any, jobs are refused and outcomes wait."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    advice = "make room: on a full disk jobs are refused (none is lost)"
    if free < MIN_SPACE_BYTES:
        yield problem("disk", f"only {size(free)} are free", advice)
    elif found.f_files and not found.f_favail:
        yield problem("disk", "the file system has no room for another file (no inodes)", advice)
    elif free < LOW_SPACE_BYTES:
        yield warning("disk", f"only {size(free)} are free", advice)
    else:
        yield ok("disk", f"{size(free)} are free")


def check_versions(
    driver: Driver = Driver.APSW, *, library: str | None = None, stdlib: str = sqlite3.sqlite_version
) -> Iterator[Finding]:
    """Our SQLite, and Python's own, which other programs may use on the same file."""
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
    """Whether this version can corrupt a database."""
    return can_corrupt(tuple(int(part) for part in version.split(".")[:3]))
