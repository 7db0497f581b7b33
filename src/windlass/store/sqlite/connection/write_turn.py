"""The order of writers among the processes that share a database file.

SQLite's own busy wait is random: a process can lose for seconds. Here writers queue for a file lock in the kernel.
Ordinary writers first take a second lock, so that only one of them waits for the turn at any time. A supervisor skips
that lock: it waits for one transaction at most, and its leases stay alive.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection.files import copy_rights, denial
from windlass.store.sqlite.connection.libraries import identity

CLOSED = -1


class WriteTurn:
    """The write turn as one process takes it; used by one thread at a time."""

    def __init__(self, database: Path, *, first: bool) -> None:
        self.file = database.with_name(database.name + "-turn")
        self._path = str(self.file)
        self._database = database
        self._open_turn()
        self._writers = None if first else _open(database.with_name(database.name + "-writers"), database)
        # A forked child shares the locks and would hold the turn after its parent's death: it closes them.
        close = weakref.WeakMethod(self.close)
        os.register_at_fork(after_in_child=lambda: (method := close()) and method())

    def take(self) -> None:
        """Wait for the turn. If this process dies, the kernel passes it on."""
        try:
            if self._writers is not None:
                fcntl.flock(self._writers, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            while self._is_deleted():
                # The folder was cleared: processes that started since then use another turn file.
                os.close(self._turn)
                self._open_turn()
                fcntl.flock(self._turn, fcntl.LOCK_EX)
        except BaseException:
            self._unlock()
            raise

    def try_take(self) -> bool:
        """Take the turn if it is free and no process waits for it."""
        try:
            if self._writers is not None:
                fcntl.flock(self._writers, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = not self._is_deleted()
        except BlockingIOError:
            taken = False
        if not taken:
            self._unlock()
        return taken

    def leave(self) -> None:
        """Pass the turn on."""
        # The read wakes commit watchers (inotify). A write would make the file dirty.
        try:
            os.pread(self._turn, 1, 0)
        except OSError:
            pass  # a lost hint
        finally:
            self._unlock()

    def _open_turn(self) -> None:
        self._turn = _open(self.file, self._database)
        found = os.fstat(self._turn)
        self._identity = found.st_dev, found.st_ino
        if not found.st_size:
            # One byte to read; a full disk is reported by larger writes.
            with contextlib.suppress(OSError):
                os.pwrite(self._turn, b"\n", 0)

    def _is_deleted(self) -> bool:
        return identity(self._path) != self._identity

    def _unlock(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._writers is not None:
            fcntl.flock(self._writers, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files, once: their numbers may belong to other files afterwards."""
        turn, self._turn, writers, self._writers = self._turn, CLOSED, self._writers, None
        if turn != CLOSED:
            os.close(turn)
        if writers is not None:
            os.close(writers)


def _open(path: Path, database: Path) -> int:
    try:
        descriptor = _open_to_lock(path)
    except PermissionError:
        raise StoreUnavailable(denial(path), lasting=True) from None
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None
    # At each opening: SQLite creates its own files with the current rights of the database, and these stay.
    copy_rights(descriptor, database)
    return descriptor


def _open_to_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except PermissionError:
        # Another user's file: a lock needs no right to write. The rights of the database decide.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
