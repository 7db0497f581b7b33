"""SQLite's rules for one process: one library per file, and nothing open at a fork.

A process that closes a file loses all its POSIX locks on that file. So a library keeps its own descriptors open, but
it cannot keep those of another library open: a read through one library releases the locks of a transaction in the
other, another process writes, and a committed write is lost. This module therefore records which library has which
file open, by device and inode.

A fork copies SQLite's table of locks, but the kernel leaves the locks themselves to the parent: the child would write
into a log that other processes may delete. So every connection is closed before a fork.
"""

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary, WeakSet

import msgspec

from windlass.errors import ConfigError
from windlass.native import rlock

File = tuple[int, int]
"""Device and inode."""

_ONLY_A_NAME = getattr(os, "O_PATH", 0)
"""A descriptor of a name only: closing it drops no lock."""

_WHY = "Two SQLite libraries on one file in one process drop each other's locks, and accepted jobs are lost."
_ADVICE = "In this process give Windlass the address with ?driver=sqlite3; then both use the same library."


class _OpenFile(msgspec.Struct, frozen=True):
    file: File
    library: str
    pid: int


class Libraries:
    """Which library has which file open in this process."""

    def __init__(self) -> None:
        # Reentrant: opening a connection of sqlite3 calls the hook below.
        self._guard = rlock()
        self._open_files: WeakKeyDictionary[object, _OpenFile] = WeakKeyDictionary()
        """By connection."""
        self._hooked = False
        os.register_at_fork(after_in_child=self._replace_guard)

    @contextlib.contextmanager
    def opening(self, path: Path, connection: object, library: str) -> Iterator[None]:
        """Surrounds the opening of a file: refuses it if another library has the file open in this process."""
        with self._guard:
            self._check(path, library)
            yield
            file = identity(path)
            if file is not None:
                self._open_files[connection] = _OpenFile(file, library, os.getpid())
            if file is not None and library == "apsw":
                self._install_hook()

    def closed(self, connection: object) -> None:
        """Record that the connection is closed."""
        with self._guard:
            self._open_files.pop(connection, None)

    def _check(self, path: Path, library: str) -> None:
        file = identity(path)
        if file is None:
            return
        in_use = {each.library for each in self._open_files.values() if each.file == file and each.pid == os.getpid()}
        foreign = in_use - {library} or _other_users(file, library, self._is_ours(file))
        if foreign:
            raise ConfigError(f"{path} is already open in this process through {foreign.pop()}. {_WHY} {_ADVICE}")

    def _is_ours(self, file: File) -> bool:
        """Whether Windlass has the file open in this process or, before the fork, in its parent."""
        return any(each.file == file for each in self._open_files.values())

    def _replace_guard(self) -> None:
        """Another thread of the parent may have held the guard at the fork."""
        self._guard = rlock()

    def _install_hook(self) -> None:
        """Audit every connection that sqlite3 opens in this process; a hook cannot be removed."""
        if self._hooked:
            return
        self._hooked = True

        # A function, not a method: every audit event of the process calls it, for 0.15 µs instead of 2.
        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "sqlite3.connect":
                self.refuse(arguments[0])

        sys.addaudithook(audit)

    def refuse(self, database: Any) -> None:
        """Raise ConfigError if sqlite3 is about to open a file that apsw has open in this process."""
        file = identity(_path(database))
        with self._guard:
            in_apsw = [each for each in self._open_files.values() if each.file == file and each.library == "apsw"]
            if any(each.pid == os.getpid() for each in in_apsw):
                raise ConfigError(
                    f"{_path(database)} is a Windlass store that is open in this process through apsw, and sqlite3 "
                    f"must not open it too. {_WHY} {_ADVICE}"
                )


LIBRARIES = Libraries()


def identity(path: Path | str) -> File | None:
    """Device and inode of a path; None if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _path(database: Any) -> str:
    """The path that `sqlite3.connect` was given, perhaps as a URI."""
    name = os.fsdecode(database) if isinstance(database, str | bytes | os.PathLike) else ""
    return unquote(urlsplit(name).path) if name.startswith("file:") else name


def _other_users(file: File, library: str, ours: bool) -> set[str]:
    """Other code of this process that has the file open, as far as it can be detected."""
    through_apsw = _open_in_apsw(file)
    if library == "apsw":
        # Descriptors have no owner: if apsw has the file open, they may all be apsw's.
        unsuspicious = ours or through_apsw or file not in _descriptors()
        return set() if unsuspicious else {"another library or open()"}
    return {"apsw"} if through_apsw and not ours else set()


def _open_in_apsw(file: File) -> bool:
    apsw = sys.modules.get("apsw")
    if apsw is None:
        return False
    for connection in apsw.connections():
        with contextlib.suppress(apsw.Error):  # closed at this moment
            if identity(connection.filename) == file:
                return True
    return False


def _descriptors() -> Iterator[File]:
    """The open files of this process; none on systems that do not list them."""
    try:
        numbers = os.listdir("/dev/fd")
    except OSError:
        return
    for number in numbers:
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(int(number))
            if fcntl.fcntl(int(number), fcntl.F_GETFL) & _ONLY_A_NAME:
                continue
            yield found.st_dev, found.st_ino


class Forkable(Protocol):
    """An object with connections."""

    def before_fork(self) -> None: ...

    def after_fork(self) -> None: ...


_forkables: "WeakSet[Forkable]" = WeakSet()


def close_before_fork(forkable: Forkable) -> None:
    """Register an object that closes its connections before this process forks."""
    _forkables.add(forkable)


def _before_fork() -> None:
    for each in list(_forkables):
        each.before_fork()


def _after_fork() -> None:
    for each in list(_forkables):
        each.after_fork()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
