"""The file and its companions as they lie there: present, ours to write, and an SQLite database."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from windlass.store.examination import Finding, ok, problem, size, warning
from windlass.store.sqlite.connection import MAGIC, WAL, Connection

OF_SQLITE, OURS = ("-wal", "-shm", "-journal"), ("-turn", "-gate", "-live")


def companion(path: Path, ending: str) -> Path:
    """A file that belongs to the database; SQLite follows symbolic links before it names its own."""
    path = path.resolve() if ending in OF_SQLITE else path
    return path.with_name(path.name + ending)


def check_presence(path: Path) -> Iterator[Finding]:
    """What hinders us from even looking into the file; nothing if it can be read."""
    folder = path.parent
    if not folder.is_dir():
        yield problem("file", f"there is no folder {folder}", "make it, or check the address")
    elif not _may(folder, os.X_OK):
        yield problem("file", f"the folder {folder} may not be entered", _owner_advice(folder))
    elif not path.exists():
        yield _missing(path)
    elif not path.is_file():
        yield problem("file", f"{path} is not a file", "name a file in the address")
    elif not _may(path, os.R_OK):
        yield problem("file", f"{path} may not be read", _owner_advice(path))


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
        "check the address; a store is made by `windlass migrate`, a worker, or the first job handed in",
    )


def check_rights(path: Path) -> Iterator[Finding]:
    """Whether this user could write, to the file and all that belongs to it."""
    there = [path, *(each for end in OF_SQLITE + OURS if (each := companion(path, end)).exists())]
    closed = [each for each in there if not _may(each, os.W_OK)]
    for each in closed:
        yield problem("rights", f"{each} may not be written by this user", _owner_advice(each))
    if not _may(path.parent, os.W_OK):
        advice = f"{_owner_advice(path.parent)}; SQLite keeps its write-ahead log beside the file"
        yield problem("rights", f"the folder {path.parent} may not be written by this user", advice)
    elif not closed:
        yield ok("rights", "file, companions and folder may be written by this user")


def check_names(path: Path) -> Iterator[Finding]:
    """A database has its log and its locks beside it under its own name: two names are two sets of them."""
    if path.is_symlink():
        yield warning(
            "file",
            f"{path} is a symbolic link to {path.resolve()}: workers that use the other name do not share its locks",
            "use the same address everywhere, best that of the file itself",
        )
    if (names := os.stat(path).st_nlink) > 1:
        yield problem(
            "file",
            f"{path} has {names} names (hard links): used under two of them, SQLite damages it",
            "remove the other names, or copy the file",
        )


def check_header(path: Path, library: type[Connection]) -> Iterator[Finding]:
    """The first page: an SQLite database at all, whole, and in WAL mode."""
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


def _may(path: Path, how: int) -> bool:
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def _owner_advice(path: Path) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "check the rights of its folder"
    return f"it belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):o}, this is user {os.geteuid()}"
