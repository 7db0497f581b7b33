"""Child processes that hold locks of a store, and do as they are told."""

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

_WAITS = "\nimport sys; print('ready', flush=True); sys.stdin.readline()"

HOLD_LOCK = """
import sys, time
from windlass.store.open import open_store
store = open_store(sys.argv[1])
for holder in sys.argv[2:]: store.leases.hold_liveness_lock(holder)
"""

LOCK_AND_FORK = (
    HOLD_LOCK
    + """
import os
told, tell = os.pipe()
if os.fork() == 0:
    os.write(tell, b"x")
    time.sleep(600)
os.read(told, 1)  # the grandchild is itself now, and no longer a copy of us
"""
)

HOLD_TURN = """
import fcntl, os, sys
fcntl.flock(os.open(sys.argv[1], os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
"""


class Child:
    """A Python process that runs `code`, says that it is ready, and waits for a line on stdin."""

    def __init__(self, code: str, *arguments: str | Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", code + _WAITS, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], 60)
        assert readable, "the child did not come up"
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it and all that it forked, by the group that only it leads."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def kill(self) -> None:
        """SIGKILL; gone when this returns."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> None:
        """SIGSTOP: it lives, but does nothing."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def leave(self) -> None:
        """Let it end in peace."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._process.wait(30)
