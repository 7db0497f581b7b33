"""The turn: who writes next, among the processes that share a database file.

SQLite's own busy wait is a lottery in which a process can lose for seconds. Here writers queue up for a file
lock in the kernel. Ordinary writers first pass a gate, so that at any time only one of them stands in the
queue: a supervisor, which passes no gate, waits for one transaction at most and its leases stay alive.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from windlass.errors import StoreUnavailable

CLOSED = -1


class Turn:
    """One process's place in the queue of writers; used by one thread at a time."""

    def __init__(self, database: Path, *, first: bool) -> None:
        self.file = database.with_name(database.name + "-turn")
        self._turn = _open(self.file)
        if not os.fstat(self._turn).st_size:
            # Something to read; a full disk is reported by those who have to write more.
            with contextlib.suppress(OSError):
                os.pwrite(self._turn, b"\n", 0)
        self._gate = None if first else _open(database.with_name(database.name + "-gate"))
        # A forked child shares our locks: it must let go of them, or it would hold the turn when we are dead.
        leave = weakref.WeakMethod(self.close)
        os.register_at_fork(after_in_child=lambda: (method := leave()) and method())

    def take(self) -> None:
        """Wait for the turn and hold it. If this process dies, the kernel passes the turn on."""
        try:
            if self._gate is not None:
                fcntl.flock(self._gate, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        except BaseException:
            self._let_go()
            raise

    def try_take(self) -> bool:
        """Take the turn if nobody has it and nobody waits for it."""
        try:
            if self._gate is not None:
                fcntl.flock(self._gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(self._turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._let_go()
            return False
        return True

    def leave(self) -> None:
        """Pass it on."""
        # The kernel tells those who wait for news that the file was read. A write would make it dirty.
        try:
            os.pread(self._turn, 1, 0)
        except OSError:
            pass  # a hint lost
        finally:
            self._let_go()

    def _let_go(self) -> None:
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._gate is not None:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the queue, once: the numbers may be other people's files afterwards."""
        turn, self._turn, gate, self._gate = self._turn, CLOSED, self._gate, None
        if turn != CLOSED:
            os.close(turn)
        if gate is not None:
            os.close(gate)


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from None
