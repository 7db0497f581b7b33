"""The order of writers among the processes that share a database file.

SQLite's own busy wait is random: a process can lose for seconds. Here writers queue in the kernel for a file lock,
the turn. Ordinary writers first take a second lock, so that only one of them waits for the turn at any time. A
supervisor skips that second lock, so it waits for at most one transaction, and renews its leases in time.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection.files import copy_permissions, denial
from windlass.store.sqlite.connection.libraries import identity

CLOSED = -1


class WriteTurn:
    """The write turn of one process; used by one thread at a time."""

    def __init__(self, database: Path, *, first: bool) -> None:
        self.file = database.with_name(database.name + "-turn")
        self._path = str(self.file)
        self._database = database
        self._open_turn()
        self._writers = None if first else _open(database.with_name(database.name + "-writers"), database)
        # A forked child shares the locks, and would hold the turn after its parent's death: it closes the files.
        close = weakref.WeakMethod(self.close)
        os.register_at_fork(after_in_child=lambda: (method := close()) and method())

    def take(self) -> None:
        """Wait for the turn. If this process dies, the kernel gives the turn to the next."""
        try:
            if self._writers is not None:
                fcntl.flock(self._writers, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            while self._is_deleted():
                # The turn file was deleted: processes that have started since use another one.
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
        """Give the turn to the next process."""
        # The read wakes commit watchers (inotify). A write would make the file dirty, and cost a flush.
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
            # One byte for the reads that wake watchers. If the disk is full, the database's own writes report it.
            with contextlib.suppress(OSError):
                os.pwrite(self._turn, b"\n", 0)

    def _is_deleted(self) -> bool:
        return identity(self._path) != self._identity

    def _unlock(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._writers is not None:
            fcntl.flock(self._writers, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files once: afterwards their descriptors may belong to other files."""
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
    # At each opening, because this file persists: SQLite creates its own anew, with the database's current
    # permissions.
    copy_permissions(descriptor, database)
    return descriptor


def _open_to_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except PermissionError:
        # Another user's file: a lock does not need write permission. The permissions of the database decide.
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
