"""Notices: the kernel tells that some process has just committed, so that nobody has to look all the time.

Every writer of ours reads the turn file when its transaction is over, and Linux tells whoever watches that file.
Elsewhere, and for writers that are not ours, looking now and then must do.
"""

import asyncio
import contextlib
import ctypes
import os
import sys
from pathlib import Path

_IN_ACCESS = 0x1
_MOST_READ = 64 * 1024


class Notices:
    """One watch on one file, for one event loop."""

    def __init__(self, file: Path) -> None:
        self._descriptor = _watch(file)

    @property
    def heard(self) -> bool:
        """Whether the kernel tells us anything here."""
        return self._descriptor is not None

    async def next(self, seconds: float) -> None:
        """Until a notice, or until the time is over. Notices since the last call count."""
        if self._descriptor is None:
            await asyncio.sleep(seconds)
            return
        loop, told = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._descriptor, told.set)
        except (OSError, RuntimeError):
            # A handler closed every descriptor of this process, and this number is somebody else's by now.
            self._descriptor = None
            return
        try:
            async with asyncio.timeout(seconds):
                await told.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._descriptor)
            with contextlib.suppress(OSError):
                os.read(self._descriptor, _MOST_READ)

    def __del__(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)


def _watch(file: Path) -> int | None:
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        return None  # too many watches on this machine
    if libc.inotify_add_watch(descriptor, os.fsencode(file), ctypes.c_uint32(_IN_ACCESS)) < 0:
        os.close(descriptor)
        return None
    return descriptor
