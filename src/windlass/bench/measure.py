"""Enqueue, drain and latency, measured in a queue of the bench's own on the store of a user."""

import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from windlass.bench import tasks
from windlass.bench.measurement import QUEUE, Figure, Measurement
from windlass.bench.process import BenchFailed, ChildProcess, start_worker
from windlass.client.app import App
from windlass.core.jobs.job import Job
from windlass.core.status import LIVE, Status

APP = "windlass.bench.tasks:app"
CHUNK = 10_000
"""Jobs per call of `enqueue_many`."""
PAGE = 1_000
PAUSES = (0.05, 0.15)
"""Seconds between two jobs whose latency is measured: the worker is idle when the next one comes."""
START_SECONDS = 60.0
RESULT_SECONDS = 60.0
JOB_RATE, MILLISECONDS = "jobs/s", "ms"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan: what to measure, where, and with which flags of `windlass worker`."""

    wanted: tuple[Measurement, ...]
    address: str
    folder: Path
    """The working directory of workers: an empty one, so that no settings file applies."""
    jobs: int
    rounds: int
    worker_flags: tuple[str, ...] = ()


def measure(plan: Plan, progress: Callable[[str], None]) -> Iterator[list[Figure]]:
    """The figures of each measurement, as soon as all of its rounds are done. The queue is empty afterwards."""
    app = tasks.app
    app._relocate(plan.address)
    bench = Bench(app, plan)
    measurements: dict[Measurement, Callable[[], dict[str, float]]] = {
        Measurement.ENQUEUE: bench.enqueue,
        Measurement.DRAIN: bench.drain,
        Measurement.LATENCY: bench.latency,
    }
    try:
        # Jobs that a killed bench left.
        bench.clear()
        for wanted in plan.wanted:
            rounds = []
            for number in range(1, plan.rounds + 1):
                progress(f"{wanted}: round {number} of {plan.rounds}")
                rounds.append(measurements[wanted]())
                bench.clear()
            yield _figures(rounds, MILLISECONDS if wanted is Measurement.LATENCY else JOB_RATE)
    finally:
        bench.clear()
        app.close()


class Bench:
    """One round of each measurement, in the queue of the bench; whatever it enqueues is deleted by `clear`."""

    def __init__(self, app: App, plan: Plan) -> None:
        self._app = app
        self._plan = plan

    def enqueue(self) -> dict[str, float]:
        """One by one, a tenth of the jobs; then all of them in bulk."""
        one_by_one, task = max(1, self._plan.jobs // 10), tasks.noop.using(queue=QUEUE)
        began = time.perf_counter()
        for _ in range(one_by_one):
            task.enqueue(1, tasks.FILLER)
        between = time.perf_counter()
        self._fill()
        ended = time.perf_counter()
        return {
            "enqueue, one by one": one_by_one / (between - began),
            "enqueue, in bulk": self._plan.jobs / (ended - between),
        }

    def drain(self) -> dict[str, float]:
        """A worker completes them: from the first claim to the last completion, as the store recorded them."""
        self._fill()
        with self._worker("--until-empty") as worker:
            while not worker.ends_within(1.0):
                pass
            worker.raise_if_failed()
        done = [job for job in self._jobs() if job.status is Status.COMPLETED]
        if len(done) != self._plan.jobs:
            raise BenchFailed(
                f"{self._plan.jobs:,} jobs were enqueued, {len(done):,} were completed: "
                f"does another bench use the queue {QUEUE}?"
            )
        first = min(job.claimed_at for job in done if job.claimed_at)
        last = max(job.finished_at for job in done if job.finished_at)
        return {"drain": len(done) / max((last - first).total_seconds(), 1e-6)}

    def latency(self) -> dict[str, float]:
        """The time from the call that enqueues to the handler's first line, in an idle worker, for a hundredth of
        the jobs.
        """
        task, pauses = tasks.latency.using(queue=QUEUE), random.Random(1)
        with self._worker() as worker:
            self._await_start(worker, task.enqueue(time.monotonic_ns()).result)
            handles = []
            for _ in range(max(1, self._plan.jobs // 100)):
                time.sleep(pauses.uniform(*PAUSES))
                handles.append(task.enqueue(time.monotonic_ns()))
            taken = sorted(handle.result(timeout=RESULT_SECONDS) / 1e6 for handle in handles)
        return {
            "latency, median": statistics.median(taken),
            "latency, p99": taken[-max(1, len(taken) // 100)],
        }

    def clear(self) -> None:
        """Delete the jobs of the queue, and no others."""
        self._app.jobs.cancel_all(queue=QUEUE, status=[*LIVE])
        self._app.jobs.delete_all(queue=QUEUE)

    def _fill(self) -> None:
        task = tasks.noop.using(queue=QUEUE)
        for start in range(0, self._plan.jobs, CHUNK):
            count = min(CHUNK, self._plan.jobs - start)
            self._app.enqueue_many([task.job(1, tasks.FILLER) for _ in range(count)])

    def _worker(self, *flags: str) -> ChildProcess:
        plan = self._plan
        return start_worker(APP, plan.address, plan.folder, "--queues", QUEUE, *plan.worker_flags, *flags)

    @staticmethod
    def _await_start(worker: ChildProcess, result: Callable[[float], Any]) -> None:
        """Wait until the worker has completed a first job."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                result(1.0)
            except TimeoutError as error:
                worker.raise_if_failed()
                if time.monotonic() > deadline:
                    raise BenchFailed(f"the worker completed no job in {START_SECONDS:g} s") from error
            else:
                return

    def _jobs(self) -> Iterator[Job]:
        cursor = None
        while True:
            page = self._app.jobs.list(queue=QUEUE, limit=PAGE, cursor=cursor)
            yield from page.items
            if (cursor := page.next_cursor) is None:
                return


def _figures(rounds: list[dict[str, float]], unit: str) -> list[Figure]:
    columns = {name: [each[name] for each in rounds] for name in rounds[0]}
    return [Figure(name, unit, statistics.median(column), column) for name, column in columns.items()]
