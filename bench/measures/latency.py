"""Latency: from the enqueue to the first line of the handler, in another process that is idle."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bench import tasks, usage
from bench.context import BenchContext
from bench.environment import MAX_SECONDS, bench_environment
from bench.peer import Peer
from bench.producer import WARM_UP
from bench.report.figures import Base, Line, Lines, Row, Section, Target, percentile
from bench.worker import Worker
from windlass.bench.process import BenchFailed, ChildProcess

IDLE = Target(2.0, at_least=False)
BARE = "bare wake-up"
SETTLE_SECONDS = 0.5
PEER_HEAD_START = 3.0


class IdleWorker(msgspec.Struct, frozen=True):
    """A worker that waits, and how to enqueue jobs for it; its handlers leave stamps in the folder."""

    process: ChildProcess
    stamps: Path
    producer: Callable[[int, dict[str, str]], ChildProcess]
    """Starts a process that enqueues this many jobs, with these variables."""
    head_start: float = 0.0
    """Seconds before the first enqueue: some workers create their tables first."""

    def produce(self, jobs: int) -> None:
        """Enqueue them with pauses."""
        finish(self.producer(jobs, {}))


class LatencyRounds(msgspec.Struct):
    """The latencies of one worker, over all rounds."""

    median: list[float] = []
    worst: list[float] = []
    idle: list[float] = []
    samples: list[float] = []

    def add(self, taken: list[float]) -> None:
        """One round's milliseconds."""
        self.samples += taken
        self.median.append(percentile(taken, 50))
        self.worst.append(percentile(taken, 99))


def measure(context: BenchContext) -> Section:
    """Windlass and its peers, one after the other, round by round."""
    peers = context.peers
    ours, theirs, bare = LatencyRounds(), {peer.name: LatencyRounds() for peer in peers}, LatencyRounds()
    for number in context.rounds("latency, Windlass"):
        watch(context, ours)
        if (taken := context.store_bench.bare_wake(context.scale.latency)) is not None:
            bare.add(taken)
        for peer in peers:
            if peer.runs:
                context.progress(f"latency, {peer.name}: round {number} of {context.scale.rounds}")
                with peer_worker(context, peer) as idle_worker:
                    _watch(context, idle_worker, theirs[peer.name])
    return _section(context, ours, bare, [(peer, theirs[peer.name]) for peer in peers])


def watch(context: BenchContext, found: LatencyRounds) -> None:
    """One round of Windlass."""
    with windlass_worker(context) as idle_worker:
        _watch(context, idle_worker, found)


@contextmanager
def windlass_worker(context: BenchContext) -> Iterator[IdleWorker]:
    """A Windlass worker on an empty store."""
    with context.store() as made:
        address = context.route(made)
        stamps = context.scratch() / "stamps"
        environment = {"WINDLASS_STORE": address, tasks.STAMPS: str(stamps)}

        def producer(jobs: int, variables: dict[str, str]) -> ChildProcess:
            command = [sys.executable, "-m", "bench.producer", str(jobs)]
            return ChildProcess(command, context.folder, {**bench_environment(), **environment, **variables})

        with Worker(address, context.folder, environment).start() as process:
            yield IdleWorker(process, stamps, producer)


@contextmanager
def peer_worker(context: BenchContext, peer: Peer) -> Iterator[IdleWorker]:
    """A peer's worker on an empty store."""
    with context.peer_store() as peer_store:

        def producer(jobs: int, variables: dict[str, str]) -> ChildProcess:
            command = peer.command("produce", peer_store, jobs)
            return ChildProcess(command, peer_store.folder, {**peer.variables(peer_store), **variables})

        with ChildProcess(
            peer.command("serve", peer_store), peer_store.folder, peer.variables(peer_store)
        ) as process:
            yield IdleWorker(process, peer_store.folder / "stamps", producer, PEER_HEAD_START)


def finish(process: ChildProcess) -> None:
    """Wait for a producer."""
    with process:
        if not process.ends_within(MAX_SECONDS):
            raise BenchFailed(f"a producer did not end within {MAX_SECONDS:g} s")
        process.raise_if_failed()


def _watch(context: BenchContext, idle_worker: IdleWorker, found: LatencyRounds) -> None:
    """One round: a first job to warm up, the cost of doing nothing, then jobs with pauses."""
    process, jobs = idle_worker.process, context.scale.latency
    time.sleep(idle_worker.head_start)
    idle_worker.produce(1)
    stamps(process, idle_worker.stamps, 1)
    time.sleep(SETTLE_SECONDS)
    began, used = time.perf_counter(), usage.cpu_of_tree(process.pid)
    time.sleep(context.scale.idle_seconds)
    idle = usage.cpu_of_tree(process.pid) - used
    found.idle.append(100 * idle / (time.perf_counter() - began))
    idle_worker.produce(jobs)
    taken = stamps(process, idle_worker.stamps, jobs + 1)[1:]
    found.add(taken)


def stamps(process: ChildProcess, path: Path, jobs: int) -> list[float]:
    """Milliseconds from enqueue to start, in the order of enqueue, once all have started."""
    return [(started - sent) / 1e6 for sent, started in stamp_pairs(process, path, jobs)]


def stamp_pairs(process: ChildProcess, path: Path, jobs: int) -> list[tuple[int, int]]:
    """The moments of enqueue and start of this many jobs, in nanoseconds, without those of the warm-up."""
    deadline = time.monotonic() + MAX_SECONDS
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        read = [tuple(map(int, line.split())) for line in lines]
        pairs = sorted((sent, started) for sent, started in read if sent != WARM_UP)
        if len(pairs) >= jobs:
            return pairs
        process.raise_if_failed()
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(pairs)} of {jobs} jobs had started after {MAX_SECONDS:g} s")
        time.sleep(0.05)


def _section(
    context: BenchContext, ours: LatencyRounds, bare: LatencyRounds, theirs: list[tuple[Peer, LatencyRounds]]
) -> Section:
    rows = _targets(context, ours, bare)
    for peer, found in theirs:
        rows += [
            Row(name="median", unit="ms", rounds=ours.median, base=peer.base(found.median)),
            Row(name="p99", unit="ms", rounds=ours.worst, base=peer.base(found.worst)),
            Row(name="processor while idle", unit="% of a core", rounds=ours.idle, base=peer.base(found.idle)),
        ]
    shown = [("Windlass", ours), (BARE, bare), *((peer.title, found) for peer, found in theirs)]
    lines = [Line(name, _distribution(found.samples)) for name, found in shown if found.samples]
    return Section(
        name="latency",
        title=f"Latency: {context.scale.latency} jobs enqueued to an idle worker in another process",
        rows=rows,
        charts=[Lines("From enqueue to the handler's start", "percent of jobs", "ms", lines)],
        notes=[
            "From just before the call that enqueues, so that the flush to disk is part of it, to the handler's "
            "first line, on the clock that all processes share. Pauses of 50 to 150 ms between jobs, for all.",
            "The processor time while idle is that of the worker's whole process tree (a supervisor and a runner), "
            f"over {context.scale.idle_seconds:g} s.",
            *([context.store_bench.targets.bare_wake] if bare.samples else []),
            *(peer.entry.note for peer, _ in theirs),
        ],
    )


def _targets(context: BenchContext, ours: LatencyRounds, bare: LatencyRounds) -> list[Row]:
    """The median against the bare wake-up, in milliseconds where the store cannot notify; p99 against the median."""
    targets = context.store_bench.targets
    wake = Base(BARE, bare.median) if bare.samples else None
    median = Base("median", ours.median)
    rows = [
        Row(name="median", unit="ms", rounds=ours.median, base=wake, target=targets.median),
        Row(name="p99", unit="ms", rounds=ours.worst, base=median, target=targets.worst),
        Row(name="processor while idle", unit="% of a core", rounds=ours.idle, target=IDLE),
    ]
    if bare.samples:
        rows.append(Row(name="p99", unit="ms", rounds=ours.worst, base=Base(f"{BARE}, p99", bare.worst)))
    return rows


def _distribution(samples: list[float]) -> list[tuple[float, float]]:
    return [(float(percent), percentile(samples, percent)) for percent in range(1, 101)]
