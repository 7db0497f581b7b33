"""Proof of life on one machine: a lock held by a process for as long as it lives.

The kernel drops the lock at the moment of death, however it dies, and keeps it through any stall. So a
runner that is stopped, swapped out or stuck in C code is never taken for dead, and a killed one is seen at once.

flock, not POSIX locks: two open files conflict even inside one process, so a test or an embedded worker sees
the truth too. A child made by fork shares its parent's lock, and would keep it alive: children close it.
"""

import contextlib
import fcntl
import os
import weakref
from pathlib import Path


class Vouchers:
    """The locks of one store's runners and workers: a folder of empty files beside the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}
        forget = weakref.WeakMethod(self._close_in_child)
        os.register_at_fork(after_in_child=lambda: (method := forget()) and method())

    def take(self, holder: str) -> None:
        """Hold the lock of `holder` until released or dead; taking it twice is taking it once."""
        if holder in self._held:
            return
        self._folder.mkdir(exist_ok=True)
        # Locked before it has its name: there is no moment in which the file is there and nobody holds it.
        unnamed = self._path(f"{holder}.new")
        descriptor = os.open(unnamed, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        unnamed.rename(self._path(holder))
        self._held[holder] = descriptor

    def release(self, holder: str) -> None:
        """Give the lock up and leave no file behind."""
        descriptor = self._held.pop(holder, None)
        if descriptor is not None:
            self.clear(holder)
            os.close(descriptor)

    def alive(self, holder: str) -> bool | None:
        """True: a process holds the lock. False: one did, and is dead. None: nobody ever vouched."""
        if holder in self._held:
            return True
        try:
            descriptor = os.open(self._path(holder), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Unlocked by word: closing is not enough if a fork has just copied the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def clear(self, holder: str) -> None:
        """Remove the file of a holder that is gone."""
        with contextlib.suppress(FileNotFoundError):
            self._path(holder).unlink()

    def release_all(self) -> None:
        """Give every lock up."""
        for holder in list(self._held):
            self.release(holder)

    def _path(self, holder: str) -> Path:
        return self._folder / holder

    def _close_in_child(self) -> None:
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()
