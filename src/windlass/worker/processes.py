"""Processes as the system lists them: descendants, exit codes, orphans to reap."""

import asyncio
import contextlib
import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

MARK = "WINDLASS_HANDLER_PROCESS"
"""In the environment of a handler process and of all that it starts: its runner's mark, a dot, and its own."""
MAX_DESCENDANTS = 10_000
MAX_ROUNDS = 100
OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""Errors that concern this process, not the examined one."""
UNKNOWN = 255
"""The exit code of a child whose status was already collected, as in asyncio."""
_PR_GET_CHILD_SUBREAPER = 37
INTERVAL = 1.0
"""Seconds between checks; the event loop reaps its own children sooner."""


def descendants(pid: int) -> list[int]:
    """The children of a process, their children, and so on, as far as the system tells (Linux)."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < MAX_DESCENDANTS:
        for child in children(waiting.pop()):
            found.append(child)
            waiting.append(child)
    return found


def kill_tree(pid: int) -> None:
    """Kill a process, its group and its descendants, also those that have left the group."""
    others = descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for each in [pid, *others]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def kill_marked(mark: str) -> None:
    """Kill every process whose environment has a variable that starts with `mark`, orphans too.

    Raises OSError if no descriptor or memory is available.
    """
    wanted = mark.encode()
    # Repeat until there is none: one may start another during a round.
    for _ in range(MAX_ROUNDS):
        found = [pid for pid in _processes() if _is_marked(pid, wanted)]
        if not found:
            return
        for each in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _kill_if_marked(each, wanted)
        time.sleep(0.005)


def _kill_if_marked(pid: int, wanted: bytes) -> None:
    """Kill it only if its pid is not reused: a descriptor of a process stays valid for that process."""
    descriptor = os.pidfd_open(pid)
    try:
        if _is_marked(pid, wanted):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def _is_marked(pid: int, wanted: bytes) -> bool:
    return any(each.startswith(wanted) for each in _environment(pid))


def memory(pid: int) -> int:
    """Bytes of memory in use, or 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """The children of a process, dead ones too, as far as the system tells (Linux)."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found += [int(word) for word in (thread / "children").read_text().split()]
    return found


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError as error:
        if error.errno in OUT_OF_RESOURCES:
            raise
        return []  # not Linux


def _environment(pid: int) -> list[bytes]:
    """The environment of a process; empty if it has ended (also a zombie) or belongs to another user."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError as error:
        if error.errno in OUT_OF_RESOURCES:
            raise
        return []


def describe_exit(code: int) -> str:
    """Its exit code, or the signal that killed it: by name, or by number where Python has no name for it."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"killed by signal {-code}"


def code_of_ended(child: int) -> int | None:
    """Reap a child of this process; returns its exit code, or None while it runs."""
    try:
        found, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        return UNKNOWN
    return os.waitstatus_to_exitcode(status) if found else None


@asynccontextmanager
async def reaping_orphans() -> AsyncIterator[None]:
    """Reap orphans inside the context, if this process inherits them."""
    reaping = asyncio.create_task(_reap()) if _inherits_orphans() else None
    try:
        yield
    finally:
        if reaping is not None:
            reaping.cancel()


def _inherits_orphans() -> bool:
    if os.getpid() == 1:
        return True
    subreaper = ctypes.c_int()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(subreaper), 0, 0, 0)
    return bool(subreaper.value)


async def _reap() -> None:
    before: set[int] = set()
    while True:
        dead = {pid for pid in children(os.getpid()) if _is_dead(pid)}
        for pid in dead & before:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222 (it does not wait)
        before = dead
        await asyncio.sleep(INTERVAL)


def _is_dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return False


def another_stderr() -> int | None:
    """Another descriptor of this process's standard error, unless that is closed."""
    try:
        return os.dup(2)
    except OSError:
        return None
