"""Checks of the file and its companions: presence, rights, names, header, write-ahead log."""

import os
from collections.abc import Iterator
from pathlib import Path

from windlass.store.doctor import Finding, note, ok, problem, size, warning
from windlass.store.sqlite.connection.base import MAGIC, WAL, Connection
from windlass.store.sqlite.connection.files import (
    COMPANIONS,
    companion,
    has_right,
    ownership,
    real_path,
    second_name,
)

LONG_LOG_BYTES = 128 * 1024**2
"""Twice the length to which the log is cut while nothing reads it."""
LOCKS = Path("/proc/locks")
READERS = range(123, 128)
"""The bytes of the -shm file that readers lock."""


def check_presence(path: Path) -> Iterator[Finding]:
    """Why the file cannot be read, if so."""
    folder = path.parent
    if not folder.is_dir():
        yield problem("file", f"there is no folder {folder}", "make it, or check the address")
    elif not has_right(folder, os.X_OK):
        yield problem("file", f"the folder {folder} may not be entered", ownership(folder))
    elif not path.exists():
        yield _missing(path)
    elif not path.is_file():
        yield problem("file", f"{path} is not a file", "name a file in the address")
    elif not has_right(path, os.R_OK):
        yield problem("file", f"{path} may not be read", ownership(path))


def _missing(path: Path) -> Finding:
    if companion(path, "-wal").exists():
        return problem(
            "file",
            f"{path} is missing, but its write-ahead log {path.name}-wal is there: jobs may be in it",
            "put the file back beside its log before anything is started here",
        )
    return problem(
        "file",
        f"there is no file {path}",
        "check the address; a store is made by `windlass migrate`, a worker, or the first enqueued job",
    )


def check_rights(path: Path) -> Iterator[Finding]:
    """Whether this user could write the file and its companions."""
    there = [path, *(each for end in COMPANIONS if (each := companion(path, end)).exists())]
    locks = [companion(path, end) for end in ("-turn", "-writers")]
    closed = [each for each in there if not has_right(each, os.R_OK if each in locks else os.W_OK)]
    for each in closed:
        how = "opened" if each in locks else "written"
        yield problem("rights", f"{each} may not be {how} by this user", ownership(each))
    if not has_right(path.parent, os.W_OK):
        advice = f"{ownership(path.parent)}; SQLite keeps its write-ahead log beside the file"
        yield problem("rights", f"the folder {path.parent} may not be written by this user", advice)
    elif not closed:
        yield ok("rights", "file, companions and folder may be written by this user")


def check_names(path: Path) -> Iterator[Finding]:
    """Whether the file has a second name, with another log and other locks."""
    real = real_path(path)
    if path.is_symlink():
        yield note("file", f"{path} is a symbolic link to {real}: its log and its locks are there")
    if refusal := second_name(real):
        yield problem("file", refusal.says, refusal.advice)


def check_header(path: Path, library: type[Connection]) -> Iterator[Finding]:
    """Whether it is an SQLite database in WAL mode."""
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
            "if it stays so, another program switches it back: find that one",
        )
    left = companion(path, "-journal")
    if left.exists() and left.stat().st_size:
        yield warning(
            "journal",
            f"{left.name} is left over from a program that died while writing without a write-ahead log",
            "do not delete it: the next opening takes back what that program had not finished",
        )


def check_log(path: Path, limit: int = LONG_LOG_BYTES) -> Iterator[Finding]:
    """A read transaction that stays open keeps the log growing until the disk is full."""
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
        "end the program that reads for so long (a shell, a back-up); the log is cut after the next writes",
    )


def readers(path: Path, locks: Path = LOCKS) -> list[int]:
    """The processes inside a read transaction now (on Linux)."""
    index = companion(path, "-shm")
    if not locks.exists() or not index.exists():
        return []
    inode, found = str(index.stat().st_ino), set()
    for line in locks.read_text().splitlines():
        # 1: POSIX ADVISORY READ 1234 fe:00:5678 124 124; one that waits has "->" as its second word.
        words = line.split()
        if len(words) == 8 and words[5].rpartition(":")[2] == inode and int(words[6]) in READERS:
            found.add(int(words[4]))
    return sorted(pid for pid in found if pid > 0)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "gone"
