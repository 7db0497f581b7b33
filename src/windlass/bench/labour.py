"""A Windlass worker as users run it: `windlass worker`, default settings, real processes, watched from outside."""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from windlass.bench import process, tasks
from windlass.bench.contest import Served
from windlass.bench.process import Usage
from windlass.client.app import App
from windlass.core.job import DEFAULT_QUEUE, NewJob

CHUNK = 20_000
"""Jobs per call where the filling itself is not measured: a call has five seconds."""
FILLER = "x" * 64
"""With it a payload is that of the bare loop: {"n": 1, "s": "xxx…"}."""


class Sample(msgspec.Struct, frozen=True):
    """A runner at one moment of the wall clock."""

    at: float
    usage: Usage


class Drained(msgspec.Struct, frozen=True):
    """A worker that ran until nothing was left."""

    wall: float
    """Seconds from its start to its end, start-up and all."""
    samples: dict[int, list[Sample]]
    """Of each runner, by its process."""


def make(jobs: int, *, threads: bool = False) -> list[NewJob]:
    """No-op jobs, made but not handed in."""
    task = tasks.noop_thread if threads else tasks.noop
    return [task.job(1, FILLER) for _ in range(jobs)]


def fill(address: str, jobs: int, *, threads: bool = False) -> None:
    """Hand in so many no-op jobs."""
    app = App(address)
    try:
        for start in range(0, jobs, CHUNK):
            app.enqueue_many(make(min(CHUNK, jobs - start), threads=threads))
    finally:
        app.close()


def keep_nothing(address: str) -> None:
    """Let completed jobs go at once, as an operator may."""
    app = App(address)
    try:
        app.queues.set(DEFAULT_QUEUE, retention={"completed": 0})
    finally:
        app.close()


class Labour(msgspec.Struct, frozen=True):
    """A worker on a store: `windlass worker` with default settings, but for the flags given."""

    address: str
    folder: Path
    environment: dict[str, str] = {}
    app: str = "windlass.bench.tasks:app"

    def worker(self, *flags: str) -> Served:
        """Start it."""
        command = [sys.executable, "-m", "windlass", "worker", self.app, *flags]
        return Served(command, self.folder, {"WINDLASS_STORE": self.address, **self.environment})

    def drain(self, *flags: str, every: float = 0.1) -> Drained:
        """Run it until nothing is left, and look at its runners from time to time."""
        began, samples, known = time.perf_counter(), dict[int, list[Sample]](), set[int]()
        with self.worker("--until-empty", *flags) as served:
            while not served.ends_within(every):
                if not known or not _look(known, samples):
                    known = set(process.runners(served.pid))
            wall = time.perf_counter() - began
            served.check()
        return Drained(wall, samples)


def _look(pids: Iterable[int], samples: dict[int, list[Sample]]) -> bool:
    """Note what they use now; whether all are still there."""
    for pid in pids:
        usage = process.usage(pid)
        if usage is None or usage.resident == 0:
            return False
        samples.setdefault(pid, []).append(Sample(time.time(), usage))
    return True
