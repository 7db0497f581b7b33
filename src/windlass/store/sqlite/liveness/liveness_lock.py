"""File locks that show, on one machine, that a process is alive.

The kernel releases a lock at the moment its process dies, and keeps it through any stall. So a runner that is
stopped, swapped out or stuck in C code never counts as dead, and a killed one is detected at once.

They are flocks, not POSIX locks: two descriptors conflict even inside one process, so the locks also work in tests
and embedded workers. A forked child would share its parent's locks and keep them held, so it closes them.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path

from windlass.errors import StoreUnavailable
from windlass.store.sqlite.connection.files import copy_permissions, denial


class LivenessLocks:
    """The locks of one store's runners and workers: a folder of empty files beside the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        close = weakref.WeakMethod(self._close_in_child)
        os.register_at_fork(after_in_child=lambda: (method := close()) and method())

    def take(self, holder: str) -> None:
        """Hold the lock of `holder` until it is released or this process dies; repeating it is a no-op."""
        if holder in self._held:
            return
        # Lock the file before it gets its name, so that no process finds it unlocked.
        unnamed = self._path(f"{holder}.new")
        try:
            self._make_folder()
            descriptor = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError as error:
            refused = isinstance(error, PermissionError)
            problem = denial(unnamed) if refused else f"{unnamed} cannot be created: {error.strerror}"
            raise StoreUnavailable(problem, lasting=refused) from None
        os.fchmod(descriptor, 0o644)  # whatever the umask is: workers of other users test the lock
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unnamed.rename(self._path(holder))
        self._held[holder] = descriptor

    def release(self, holder: str) -> None:
        """Release the lock and remove its file."""
        descriptor = self._held.pop(holder, None)
        if descriptor is not None:
            self.clear(holder)
            os.close(descriptor)

    def alive(self, holder: str) -> bool | None:
        """True: a process holds the lock. False: the holder is dead. None: unknown, without a readable lock file."""
        if holder in self._held:
            return True
        try:
            descriptor = os.open(self._path(holder), os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, PermissionError):
            return None
        except OSError as error:
            # With too many open files, for example, nothing is known of the holder, and no lease may count as lapsed.
            raise StoreUnavailable(f"{self._path(holder)} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Unlock explicitly: closing is not enough if a fork has just copied the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def clear(self, holder: str) -> None:
        """Remove the file of a dead holder."""
        # The file of another user, or on a read-only disk, stays; unlocked, it does no harm.
        with contextlib.suppress(OSError):
            self._path(holder).unlink()

    def release_all(self) -> None:
        """Release every lock of this process."""
        for holder in list(self._held):
            self.release(holder)

    def _make_folder(self) -> None:
        with contextlib.suppress(FileExistsError):
            self._folder.mkdir()
        # Each time, because the permissions of the database's folder may have changed.
        copy_permissions(self._folder, self._folder.parent)

    def _path(self, holder: str) -> Path:
        return self._folder / holder

    def _close_in_child(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()


class MemoryLivenessLocks(LivenessLocks):
    """Locks of a database in memory: all holders are in this process."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._holders: set[str] = set()

    def take(self, holder: str) -> None:
        self._holders.add(holder)

    def release(self, holder: str) -> None:
        self._holders.discard(holder)

    def alive(self, holder: str) -> bool | None:
        return True if holder in self._holders else None

    def clear(self, holder: str) -> None:
        """No-op: there is no file."""
