"""A Windlass worker as users run it: `windlass worker`, default settings, real processes, watched from outside."""

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench import tasks
from bench.environment import bench_environment
from bench.usage import Usage, runners, usage
from windlass.bench.process import ChildProcess, start_worker
from windlass.client.app import App
from windlass.core.jobs.job import DEFAULT_QUEUE, NewJob

CHUNK = 20_000
"""Jobs per call of `fill`, which is not measured: a call has five seconds."""


class Sample(msgspec.Struct, frozen=True):
    """A runner at one moment of the wall clock."""

    at: float
    usage: Usage


class Drained(msgspec.Struct, frozen=True):
    """A worker's run until the queue was empty."""

    wall: float
    """Seconds from its start to its end, start-up included."""
    samples: dict[int, list[Sample]]
    """Of each runner, by its process."""


def make_jobs(jobs: int, *, threads: bool = False) -> list[NewJob]:
    """No-op jobs, made but not enqueued."""
    task = tasks.noop_thread if threads else tasks.noop
    return [task.job(1, tasks.FILLER) for _ in range(jobs)]


FILL_SECONDS = 60.0
"""Deadline of one call of `fill`, which is not measured."""


def fill(address: str, jobs: int, *, threads: bool = False) -> None:
    """Enqueue no-op jobs."""
    app = App(address, deadline=FILL_SECONDS)
    try:
        for start in range(0, jobs, CHUNK):
            app.enqueue_many(make_jobs(min(CHUNK, jobs - start), threads=threads))
    finally:
        app.close()


def keep_nothing(address: str) -> None:
    """Keep no completed jobs."""
    app = App(address)
    try:
        app.queues.set(DEFAULT_QUEUE, retention={"completed": 0})
    finally:
        app.close()


class Worker(msgspec.Struct, frozen=True):
    """A worker on a store: `windlass worker` with default settings, but for the flags given."""

    address: str
    folder: Path
    environment: dict[str, str] = {}
    app: str = "bench.tasks:app"

    def start(self, *flags: str) -> ChildProcess:
        """Start it."""
        environment = {**bench_environment(), **self.environment}
        return start_worker(self.app, self.address, self.folder, *flags, environment=environment)

    def drain(self, *flags: str, every: float = 0.1) -> Drained:
        """Run it until nothing is left, and sample the usage of its runners."""
        began, samples, known = time.perf_counter(), dict[int, list[Sample]](), set[int]()
        with self.start("--until-empty", *flags) as process:
            while not process.ends_within(every):
                if not known or not _look(known, samples):
                    known = set(runners(process.pid))
            wall = time.perf_counter() - began
            process.raise_if_failed()
        return Drained(wall, samples)


def _look(pids: Iterable[int], samples: dict[int, list[Sample]]) -> bool:
    """Sample the usage of its runners; returns whether all are alive."""
    for pid in pids:
        seen = usage(pid)
        if seen is None or seen.resident == 0:
            return False
        samples.setdefault(pid, []).append(Sample(time.time(), seen))
    return True
