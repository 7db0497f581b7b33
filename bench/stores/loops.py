"""Start bare loops as processes, begin them together, and read their results."""

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from bench.environment import MAX_SECONDS, bench_environment
from windlass.bench.process import BenchFailed


def run_loops(module: str, dsn: str, wanted: Sequence[tuple[str, int]]) -> list[str]:
    """The output of each loop, given as name and number of jobs."""
    with ExitStack() as stack:
        loops = [stack.enter_context(_Loop(module, dsn, what, jobs)) for what, jobs in wanted]
        for loop in loops:
            loop.await_ready()
        for loop in loops:
            loop.begin()
        return [loop.result() for loop in loops]


class _Loop:
    """One process."""

    def __init__(self, module: str, dsn: str, what: str, jobs: int) -> None:
        command = [sys.executable, "-m", module, what, dsn, str(jobs)]
        self._what = what
        self._popen = subprocess.Popen(
            command,
            env={**os.environ, **bench_environment()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "_Loop":
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.communicate()

    def await_ready(self) -> None:
        """Wait until it has connected."""
        assert self._popen.stdout is not None
        if self._popen.stdout.readline() != "ready\n":
            raise BenchFailed(f"the bare loop {self._what!r} did not get ready")

    def begin(self) -> None:
        """Let it begin."""
        assert self._popen.stdin is not None
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()

    def result(self) -> str:
        """Its output line."""
        said, _ = self._popen.communicate(timeout=MAX_SECONDS)
        if self._popen.returncode != 0:
            raise BenchFailed(f"the bare loop {self._what!r} ended with code {self._popen.returncode}")
        return said
