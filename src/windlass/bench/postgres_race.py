"""Start bare loops, let them begin together, and read what they found."""

import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack

import msgspec

from windlass.bench.contest import PATIENCE, BenchFailed
from windlass.bench.postgres_loops import Drained
from windlass.bench.yardstick import BareDrain


def race(dsn: str, loops: int) -> BareDrain:
    """What so many loops reach together on the same tables, and the processor time that a job took them."""
    said = _run(dsn, [("drain", 0)] * loops)
    drained = [msgspec.json.decode(line, type=Drained) for line in said]
    jobs = sum(each.jobs for each in drained)
    taken = max(each.ended for each in drained) - min(each.began for each in drained)
    return BareDrain(jobs / taken, sum(each.cpu for each in drained) / jobs)


def wake(dsn: str, jobs: int) -> list[float]:
    """Milliseconds from hand-in in one process to claimed in another, which listens."""
    return msgspec.json.decode(_run(dsn, [("listen", jobs), ("produce", jobs)])[0], type=list[float])


def _run(dsn: str, wanted: Sequence[tuple[str, int]]) -> list[str]:
    with ExitStack() as stack:
        loops = [stack.enter_context(_Loop(dsn, what, jobs)) for what, jobs in wanted]
        for loop in loops:
            loop.await_ready()
        for loop in loops:
            loop.begin()
        return [loop.result() for loop in loops]


class _Loop:
    """One process."""

    def __init__(self, dsn: str, what: str, jobs: int) -> None:
        command = [sys.executable, "-m", "windlass.bench.postgres_loops", what, dsn, str(jobs)]
        self._what = what
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "_Loop":
        return self

    def __exit__(self, *_: object) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.communicate()

    def await_ready(self) -> None:
        """Until it has connected."""
        assert self._popen.stdout is not None
        if self._popen.stdout.readline() != "ready\n":
            raise BenchFailed(f"the bare loop {self._what!r} did not get ready")

    def begin(self) -> None:
        """Let it go."""
        assert self._popen.stdin is not None
        self._popen.stdin.write("\n")
        self._popen.stdin.flush()

    def result(self) -> str:
        """Its line, when it is done."""
        said, _ = self._popen.communicate(timeout=PATIENCE)
        if self._popen.returncode != 0:
            raise BenchFailed(f"the bare loop {self._what!r} ended with code {self._popen.returncode}")
        return said
