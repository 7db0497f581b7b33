"""Where a runner is stuck: asked by a signal, it writes its stacks, also while a handler holds the interpreter."""

import asyncio
import contextlib
import os
import re
import signal
import tempfile

import windlass

STACK_SIGNAL = signal.SIGUSR2
WRITING_SECONDS = 0.05
MAX_REPORT_BYTES = 256 * 1024
GONE = "a process that has ended"

_THREAD = re.compile(r"^(?:Current thread|Thread) .*$", re.MULTILINE)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>\S+)')
_OURS = os.path.dirname(windlass.__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep


class Stacks:
    """A file without a name, which the runner writes into and its supervisor reads."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._closed = False

    @classmethod
    def create(cls) -> "Stacks":
        """A new one; its descriptor is handed to the runner."""
        if hasattr(os, "memfd_create"):
            return cls(os.memfd_create("windlass-stacks"))
        with tempfile.TemporaryFile() as file:
            return cls(os.dup(file.fileno()))

    async def ask(self, pid: int) -> str:
        """The line of user code at which each busy thread is. The process may end meanwhile."""
        os.ftruncate(self.descriptor, 0)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, STACK_SIGNAL)
        await asyncio.sleep(WRITING_SECONDS)
        if self._closed:
            return GONE  # the descriptor may be another file's by now
        return user_frames(os.pread(self.descriptor, MAX_REPORT_BYTES, 0).decode("utf-8", "replace"))

    def close(self) -> None:
        """Close the file."""
        self._closed = True
        os.close(self.descriptor)


def user_frames(report: str) -> str:
    """The innermost frame of each thread that is in user code."""
    found = []
    for thread in _THREAD.split(report)[1:]:
        frames = [match for match in _FRAME.finditer(thread) if _is_users(match["file"])]
        if frames:
            found.append(f"{frames[0]['file']}:{frames[0]['line']} in {frames[0]['name']}")
    return "; ".join(dict.fromkeys(found)) or "somewhere outside of Python code"


def _is_users(file: str) -> bool:
    installed = file.startswith(_STANDARD) and "site-packages" not in file
    return not (installed or file.startswith((_OURS, "<")))
