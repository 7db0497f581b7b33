"""Real processes for end-to-end tests: started, signalled, waited for, and never left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds that a condition may take: the machine is shared, and no test here is about speed."""
MARK = "WINDLASS_E2E"
"""In the environment of everything we start: orphans are found by it, whichever process is their parent now."""


def until(look: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Look again and again until the answer is true; that answer. Soon at first, then every 40 ms."""
    end = time.monotonic() + seconds
    pause = 0.005
    while not (answer := look()):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(pause)
        pause = min(1.3 * pause, 0.04)
    return answer


def let_pass(seconds: float) -> None:
    """Time itself is what is waited for: longer than a lease, say."""
    time.sleep(seconds)


class Process:
    """One process that a test started, with its output in a file."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self._popen = popen
        self._log = log

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def output(self) -> str:
        """Everything said so far, by it and by its children."""
        return self._log.read_text(errors="replace")

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        """As the kernel would: no chance to say good-bye."""
        self._popen.kill()
        self._popen.wait()

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit code."""
        until(lambda: self.ended, f"{self.name} ends", seconds)
        return self._popen.wait()

    def runners(self) -> list[int]:
        """The runners of a worker, oldest first."""
        return [pid for pid in children(self.pid) if b"windlass.worker.runner" in command(pid)]

    def runner(self) -> int:
        """Its one runner, as soon as there is one."""
        return until(self.runners, f"{self.name} has a runner")[0]

    def tree(self) -> list[int]:
        """The process and its runners."""
        return [self.pid, *self.runners()]


class Processes:
    """Everything that one test starts."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._mark = uuid.uuid4().hex
        self.environment = {**os.environ, "PYTHONUNBUFFERED": "1", MARK: self._mark, **(environment or {})}
        self.started: list[Process] = []

    def start(self, name: str, *arguments: str, environment: Mapping[str, str] | None = None) -> Process:
        """Run Python with these arguments in the folder, and what is to be added to its environment."""
        log = self._folder / f"{len(self.started)}-{name}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=self._folder,
                env={**self.environment, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.started.append(Process(name, popen, log))
        return self.started[-1]

    def end(self) -> None:
        """Kill whatever is left, orphans too, and show what was said (pytest shows it if the test failed)."""
        # Twice: something may have been starting another process while we looked.
        for _ in range(2):
            for pid in self.ours():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self.started:
            process.kill()
            print(f"--- {process.name} (pid {process.pid})\n{process.output}")

    def ours(self) -> list[int]:
        """Every process that came of this test, orphans too."""
        return [pid for pid in processes() if f"{MARK}={self._mark}".encode() in _read(pid, "environ").split(b"\0")]


def processes() -> list[int]:
    """Every process of this machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def children(parent: int) -> list[int]:
    """The living children of a process, oldest first."""
    return sorted(pid for pid in processes() if _stat(pid)[1] == parent and alive(pid))


def descendants(ancestor: int) -> list[int]:
    """Its children, their children and so on, whatever session they are in: what a control group holds."""
    found = children(ancestor)
    return [*found, *(pid for child in found for pid in descendants(child))]


def alive(pid: int) -> bool:
    """Whether it exists and is no zombie."""
    return _stat(pid)[0] not in ("", "Z", "X")


def stopped(pid: int) -> bool:
    """Whether it stands still, or is gone."""
    return _stat(pid)[0] in ("T", "Z", "X", "")


def cpu_seconds(pid: int) -> float:
    """Processor time that it has used so far."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def command(pid: int) -> bytes:
    return _read(pid, "cmdline")


def signal_all(pids: list[int], number: signal.Signals) -> None:
    """To each, in this order."""
    for pid in pids:
        os.kill(pid, number)


def freeze(pids: list[int], is_held_up: Callable[[], bool]) -> None:
    """Stop these at a moment at which none of them is writing: one that is would block all others."""
    while True:
        signal_all(pids, signal.SIGSTOP)
        until(lambda: all(_stat(pid)[0] in ("T", "") for pid in pids), "they have stopped")
        if not is_held_up():
            return
        signal_all(pids, signal.SIGCONT)


def _stat(pid: int) -> tuple[str, int]:
    """State and parent; the name before them is in brackets and may contain anything."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (fields[0].decode(), int(fields[1])) if fields else ("", 0)


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""  # it is gone, or not ours to look at
