"""One SQLite library per process and file.

A process that closes a file loses all its POSIX locks on it, whoever took them. A library knows that and keeps its
own descriptors open; two libraries do not know of each other. So a read through the one unlocks a transaction of the
other in mid-write, another process writes, and a commit that answered OK is gone. This is the one place where the
state of the process is the truth: who has what open here, by device and inode.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import msgspec

from windlass.errors import ConfigError

File = tuple[int, int]
"""Device and inode: what a file is, under whatever name."""

_WHY = "Two SQLite libraries on one file in one process drop each other's locks, and accepted jobs are lost."
_CURE = "In this process give Windlass the address with ?driver=sqlite3, then both use the same library."


class _Hold(msgspec.Struct, frozen=True):
    file: File
    library: str
    pid: int


class Libraries:
    """Which library holds which file in this process, for as long as the connections live."""

    def __init__(self) -> None:
        # Reentrant: opening a connection of sqlite3 calls the hook below.
        self._guard = threading.RLock()
        self._holds: WeakKeyDictionary[object, _Hold] = WeakKeyDictionary()
        self._listens = False
        os.register_at_fork(after_in_child=self._renew)

    @contextlib.contextmanager
    def opening(self, path: Path, connection: object, library: str) -> Iterator[None]:
        """Round the opening of a file: refused if another library has it open here, noted if it succeeds."""
        with self._guard:
            self._check(path, library)
            yield
            file = identity(path)
            if file is not None:
                self._holds[connection] = _Hold(file, library, os.getpid())
            if file is not None and library == "apsw":
                self._listen()

    def closed(self, connection: object) -> None:
        """It holds nothing any more."""
        with self._guard:
            self._holds.pop(connection, None)

    def _check(self, path: Path, library: str) -> None:
        file = identity(path)
        if file is None:
            return
        holders = {hold.library for hold in self._holds.values() if hold.file == file and hold.pid == os.getpid()}
        foreign = holders - {library} or _found(file, library, self._is_held(file))
        if foreign:
            raise ConfigError(f"{path} is already open in this process through {foreign.pop()}. {_WHY} {_CURE}")

    def _is_held(self, file: File) -> bool:
        # Of a parent, too: a fork copies its descriptors, and they belong to the same library.
        return any(hold.file == file for hold in self._holds.values())

    def _renew(self) -> None:
        # Another thread of the parent may have held it at the fork, and will never let go of it here.
        self._guard = threading.RLock()

    def _listen(self) -> None:
        """From now on hear of every connection that sqlite3 opens in this process; a hook cannot be taken away."""
        if self._listens:
            return
        self._listens = True

        # A function, not a method: every audit event of the process comes here, and that costs 0.15 µs instead of 2.
        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            if event == "sqlite3.connect":
                self.refuse(arguments[0])

        sys.addaudithook(hear)

    def refuse(self, database: Any) -> None:
        """Raise if sqlite3 is about to open a file that apsw holds here."""
        file = identity(_path(database))
        with self._guard:
            held = [hold for hold in self._holds.values() if hold.file == file and hold.library == "apsw"]
            if any(hold.pid == os.getpid() for hold in held):
                raise ConfigError(
                    f"{_path(database)} is a Windlass store that is open in this process through apsw, and sqlite3 "
                    f"must not open it too. {_WHY} {_CURE}"
                )


LIBRARIES = Libraries()


def identity(path: Path | str) -> File | None:
    """Which file a name means now; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def _path(database: Any) -> str:
    """The file that `sqlite3.connect` was asked for; it may be written as a URI."""
    name = os.fsdecode(database) if isinstance(database, str | bytes | os.PathLike) else ""
    return unquote(urlsplit(name).path) if name.startswith("file:") else name


def _found(file: File, library: str, ours: bool) -> set[str]:
    """Who else has the file open, as far as the system and the libraries tell."""
    through_apsw = _open_in_apsw(file)
    if library == "apsw":
        # Descriptors bear no names: where apsw has the file open already, they may all be its own.
        quiet = ours or through_apsw or file not in _descriptors()
        return set() if quiet else {"another library or open()"}
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
    """The files that are open in this process; nothing where the system does not tell."""
    try:
        numbers = os.listdir("/dev/fd")
    except OSError:
        return
    for number in numbers:
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(int(number))
            yield found.st_dev, found.st_ino
