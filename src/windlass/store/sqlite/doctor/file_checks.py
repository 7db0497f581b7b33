"""Checks that need no query: versions, durability, file system, free space, permissions, names, header, log."""

import os
import platform
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import apsw

from windlass.store.doctor import Finding, note, ok, problem, size, warning
from windlass.store.sqlite.address import DURABILITY, Address, Driver
from windlass.store.sqlite.connection.base import MAGIC, WAL, Connection
from windlass.store.sqlite.connection.files import (
    COMPANIONS,
    NETWORK,
    companion,
    file_system_of,
    has_permission,
    ownership,
    real_path,
    second_name,
)
from windlass.store.sqlite.connection.stdlib_driver import can_corrupt
from windlass.version import __version__

LONG_LOG_BYTES = 128 * 1024**2
"""Twice the length to which SQLite truncates the log when nothing reads it."""
LOCKS = Path("/proc/locks")
READERS = range(123, 128)
"""The bytes of the -shm file that readers lock."""
MOUNTS = Path("/proc/self/mountinfo")
MEMORY = frozenset({"tmpfs", "ramfs"})
LAYERED = frozenset({"overlay", "aufs"})
LOW_SPACE_BYTES = 1024**3
MIN_SPACE_BYTES = 64 * 1024**2
"""What the write-ahead log alone may need."""


def check_durability(address: Address) -> Iterator[Finding]:
    """The durability that this address asks for; other processes may ask for another one."""
    setting = f"synchronous={DURABILITY[address.durability]}"
    if address.durability == "full":
        yield ok("durability", f"an accepted job is flushed to the disk ({setting})")
    else:
        yield warning(
            "durability",
            f"?durability={address.durability} ({setting}): a power cut may lose the jobs accepted last; "
            "the crash of a process does not",
            "leave the option out to have every accepted job flushed",
        )


def check_file_system(address: Address, mounts: Path = MOUNTS) -> Iterator[Finding]:
    """Whether the file system supports locks and keeps files."""
    folder = address.path.parent
    kind = file_system_of(folder, mounts)
    if kind is None:
        yield note("file system", "its type is unknown on this system; SQLite needs a local disk")
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
            f"{folder} is on {kind}, which is memory: every job is lost when the machine stops",
            "put the file on a disk",
        )
    elif kind in LAYERED:
        yield warning(
            "file system",
            f"{folder} is on {kind}, a layer of a container: the file is deleted with the container",
            "put the file on a volume that outlives the container",
        )
    else:
        yield ok("file system", f"{kind}, local")


def check_free_space(folder: Path) -> Iterator[Finding]:
    """Free space; on a full disk, jobs are refused and outcomes wait."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    advice = "free some space: on a full disk jobs are refused (none is lost)"
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
    """The SQLite that Windlass uses, and Python's own, which other programs may use on the same file."""
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
            "pip install --upgrade apsw (3.51.3 or newer brings a SQLite without this bug)",
        )
    else:
        yield ok("versions", running)
    if affected(stdlib) and driver is not Driver.SQLITE3:
        yield note(
            "versions",
            f"the sqlite3 module of this Python uses SQLite {stdlib}, which can corrupt a database that several "
            "processes write; Windlass does not use it",
            "let no other program write this file with that module while workers run",
        )


def _with_stdlib(running: str, stdlib: str) -> Iterator[Finding]:
    if affected(stdlib):
        yield warning(
            "versions",
            f"{running}; driver=sqlite3 uses SQLite {stdlib}: versions 3.7.0 to 3.51.2 can, very rarely, corrupt a "
            "database that several connections write",
            "use a Python with SQLite 3.51.3 or newer, or the default driver where no other code opens the file",
        )
    else:
        yield ok("versions", f"{running}; driver=sqlite3 uses SQLite {stdlib}")


def affected(version: str) -> bool:
    """Whether this version of SQLite can corrupt a database."""
    return can_corrupt(tuple(int(part) for part in version.split(".")[:3]))


def check_presence(path: Path) -> Iterator[Finding]:
    """Why the file cannot be read; nothing if it can."""
    folder = path.parent
    if not folder.is_dir():
        yield problem("file", f"there is no folder {folder}", "create it, or check the address")
    elif not has_permission(folder, os.X_OK):
        yield problem("file", f"the folder {folder} may not be entered", ownership(folder))
    elif not path.exists():
        yield _missing(path)
    elif not path.is_file():
        yield problem("file", f"{path} is not a file", "name a file in the address")
    elif not has_permission(path, os.R_OK):
        yield problem("file", f"{path} may not be read", ownership(path))


def _missing(path: Path) -> Finding:
    if companion(path, "-wal").exists():
        return problem(
            "file",
            f"{path} is missing, but its write-ahead log {path.name}-wal is there: jobs may be in it",
            "put the file back beside its log before you start anything here",
        )
    return problem(
        "file",
        f"there is no file {path}",
        "check the address; a store is created by `windlass migrate`, a worker, or the first enqueued job",
    )


def check_rights(path: Path) -> Iterator[Finding]:
    """Whether this user may write the file and its companions."""
    there = [path, *(each for end in COMPANIONS if (each := companion(path, end)).exists())]
    locks = [companion(path, end) for end in ("-turn", "-writers")]
    closed = [each for each in there if not has_permission(each, os.R_OK if each in locks else os.W_OK)]
    for each in closed:
        how = "opened" if each in locks else "written"
        yield problem("rights", f"{each} may not be {how} by this user", ownership(each))
    if not has_permission(path.parent, os.W_OK):
        advice = f"{ownership(path.parent)}; SQLite keeps its write-ahead log beside the file"
        yield problem("rights", f"the folder {path.parent} may not be written by this user", advice)
    elif not closed:
        yield ok("rights", "file, companions and folder may be written by this user")


def check_names(path: Path) -> Iterator[Finding]:
    """Whether the file has a second name, which would have another log and other locks."""
    real = real_path(path)
    if path.is_symlink():
        yield note("file", f"{path} is a symbolic link to {real}: its log and its locks are there")
    if refusal := second_name(real):
        yield problem("file", refusal.problem, refusal.advice)


def check_header(path: Path, library: type[Connection]) -> Iterator[Finding]:
    """Whether the file is an SQLite database in WAL mode."""
    length = os.stat(path).st_size
    if not length:
        yield ok("file", f"{path} is empty")
        return
    header = library.header(path)
    if header[:16] != MAGIC:
        yield problem(
            "file",
            f"{path} is not an SQLite database, or its beginning is damaged",
            "check the address; if it was a store, restore it from a back-up",
        )
        return
    yield ok("file", f"{path}, {size(length)}")
    yield from _journal(path, header)


def _journal(path: Path, header: bytes) -> Iterator[Finding]:
    if header[18:20] == bytes((WAL, WAL)):
        yield ok("journal", "write-ahead log")
    else:
        yield warning(
            "journal",
            "the database does not use a write-ahead log; the next worker or producer switches it",
            "if this finding stays, another program switches it back: find that program",
        )
    left = companion(path, "-journal")
    if left.exists() and left.stat().st_size:
        yield warning(
            "journal",
            f"{left.name} is left over from a program that died while writing without a write-ahead log",
            "do not delete it: with its help the next program to open the database rolls back the unfinished write",
        )


def check_log(path: Path, limit: int = LONG_LOG_BYTES) -> Iterator[Finding]:
    """The length of the log: while a read transaction stays open, the log grows until the disk is full."""
    log = companion(path, "-wal")
    length = log.stat().st_size if log.exists() else 0
    if length <= limit:
        yield ok("log", f"the write-ahead log has {size(length)}")
        return
    pids = readers(path)
    names = ", ".join(f"{pid} ({_name(pid)})" for pid in pids)
    yield warning(
        "log",
        f"the write-ahead log has grown to {size(length)}: a transaction that stays open holds it back"
        + (f"; process {names} reads now" if pids else ""),
        "end the program with the open transaction (a shell, a back-up); the next writes then truncate the log",
    )


def readers(path: Path, locks: Path = LOCKS) -> list[int]:
    """The processes inside a read transaction now (on Linux)."""
    index = companion(path, "-shm")
    if not locks.exists() or not index.exists():
        return []
    inode, found = str(index.stat().st_ino), set()
    for line in locks.read_text().splitlines():
        # 1: POSIX ADVISORY READ 1234 fe:00:5678 124 124; the line of a process that waits has "->" as its second
        # word.
        words = line.split()
        if len(words) == 8 and words[5].rpartition(":")[2] == inode and int(words[6]) in READERS:
            found.add(int(words[4]))
    return sorted(pid for pid in found if pid > 0)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
