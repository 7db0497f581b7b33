"""Processes of a bench: workers as users run them, watched from outside."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from windlass.errors import WindlassError

TERMINATE_SECONDS = 10.0
MAX_OUTPUT = 1_000
"""Characters of a failed process's output in the error message."""


class BenchFailed(WindlassError):
    """A part of the bench failed, so there is no figure."""

    code = "bench_failed"


class ChildProcess:
    """A process that runs until it ends or the `with` block does; its output goes to a file."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end
        self._popen = subprocess.Popen(
            command,
            cwd=folder,
            env={**_neutral_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._command = command

    def __enter__(self) -> "ChildProcess":
        return self

    def __exit__(self, *_: object) -> None:
        """Terminate it; kill it if that takes too long."""
        if self._popen.poll() is None:
            self._popen.terminate()
            if not self.ends_within(TERMINATE_SECONDS):
                self._popen.kill()
                self._popen.wait()
        self._log.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def raise_if_failed(self) -> None:
        """Raise BenchFailed with the end of its output if it ended with an error."""
        code = self._popen.poll()
        if code:
            self._log.seek(0)
            output = self._log.read().decode(errors="replace")[-MAX_OUTPUT:]
            raise BenchFailed(f"{' '.join(self._command[:6])} … ended with code {code}: {output}")


def start_worker(
    app: str, address: str, folder: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> ChildProcess:
    """`windlass worker` with default settings, but for the flags given."""
    command = [sys.executable, "-m", "windlass", "worker", app, *flags]
    return ChildProcess(command, folder, {"WINDLASS_STORE": address, **(environment or {})})


def _neutral_environment() -> dict[str, str]:
    """The environment without the variables that change a worker's defaults."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
