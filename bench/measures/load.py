"""Latency under load: jobs that come at a steady rate, from one producer or from many."""

import time

import msgspec

from bench.context import BenchContext, Load
from bench.measures import latency
from bench.measures.latency import IdleWorker, finish, peer_worker, stamp_pairs, windlass_worker
from bench.peer import Peer
from bench.producer import BEGIN, RATE
from bench.report.figures import Base, Row, Section, Target, percentile
from windlass.bench.process import BenchFailed

STARTED_AT_ONCE = 10
"""Producers that can start and connect in the time in which a worker starts."""
MAX_LAG = 1.1
"""As a multiple of the time that its jobs should take: a slower producer does not keep up."""
MAX_BEHIND_SECONDS = 1.0
"""Seconds between the last enqueue and the last start: a slower worker does not keep up."""
FEW = 100
"""With fewer samples the maximum is shown instead of p99."""
SERVED = Target(1.0, at_least=False)


class LoadRounds(msgspec.Struct):
    """The latencies under one load, over all rounds."""

    median: list[float] = []
    worst: list[float] = []
    problem: str | None = None

    def add(self, load: Load, pairs: list[tuple[int, int]]) -> None:
        """One round."""
        self.problem = self.problem or lag(load, pairs)
        taken = [(started - sent) / 1e6 for sent, started in pairs]
        self.median.append(percentile(taken, 50))
        self.worst.append(max(taken) if len(taken) <= FEW else percentile(taken, 99))


def lag(load: Load, pairs: list[tuple[int, int]]) -> str | None:
    """Why the worker or the producers did not keep up with this load; moments are in nanoseconds."""
    span = (max(sent for sent, _ in pairs) - min(sent for sent, _ in pairs)) / 1e9
    wanted = (load.jobs // load.producers) / load.rate
    if span > MAX_LAG * wanted + MAX_BEHIND_SECONDS:
        return f"cannot keep up: enqueued {len(pairs) / span:,.0f} jobs/s of {load.rate * load.producers:,.0f}"
    behind = (max(started for _, started in pairs) - max(sent for sent, _ in pairs)) / 1e9
    if behind > MAX_BEHIND_SECONDS:
        return f"cannot keep up: the last job started {behind:.1f} s after it was enqueued"
    return None


def measure(context: BenchContext) -> Section:
    """Latency while idle, and under each load."""
    idle = latency.measure(context)
    samples = ", ".join(f"{load.jobs:,} at {load.name}" for load in context.scale.loads)
    return msgspec.structs.replace(
        idle,
        rows=[*idle.rows, *_measure(context)],
        notes=[
            *idle.notes,
            "Under load, each job is enqueued at a fixed time, even if the jobs before it are late. Every producer "
            f"is a process. With {FEW} samples or fewer the worst is shown instead of p99. Samples of each round: "
            f"{samples}. The target is the best peer that does not lose the jobs of a dying worker.",
        ],
    )


def _measure(context: BenchContext) -> list[Row]:
    """Each load, Windlass and its peers one after the other, round by round."""
    loads, peers = context.scale.loads, [peer for peer in context.peers if peer.entry.loads]
    ours = {load: LoadRounds() for load in loads}
    theirs = {(load, peer.name): LoadRounds() for load in loads for peer in peers}
    for number in context.rounds("load"):
        for load in loads:
            context.progress(f"load, {load.name}: round {number} of {context.scale.rounds}")
            with windlass_worker(context) as worker:
                ours[load].add(load, _run(context, worker, load))
            for peer in peers:
                if peer.runs:
                    _run_peer(context, peer, load, theirs[load, peer.name])
    found = {load: [(peer, theirs[load, peer.name]) for peer in peers] for load in loads}
    return [row for load in loads for row in _rows(load, ours[load], found[load])]


def _run_peer(context: BenchContext, peer: Peer, load: Load, found: LoadRounds) -> None:
    """A peer that has failed under this load once is not asked again."""
    if found.problem is not None:
        return
    context.progress(f"load, {load.name}: {peer.name}")
    try:
        with peer_worker(context, peer) as worker:
            found.add(load, _run(context, worker, load))
    except BenchFailed as error:
        found.problem = f"cannot keep up: {error}"


def _run(context: BenchContext, worker: IdleWorker, load: Load) -> list[tuple[int, int]]:
    time.sleep(worker.head_start)
    worker.produce(1)
    stamp_pairs(worker.process, worker.stamps, 1)
    begin = time.monotonic() + context.scale.start_seconds * (1 + load.producers / STARTED_AT_ONCE)
    each = load.jobs // load.producers
    # Their moments are spread over the time between two of one producer.
    phases = [number / load.rate / load.producers for number in range(load.producers)]
    producers = [worker.producer(each, {RATE: str(load.rate), BEGIN: str(begin + phase)}) for phase in phases]
    for producer in producers:
        finish(producer)
    return stamp_pairs(worker.process, worker.stamps, 1 + each * load.producers)[1:]


def _rows(load: Load, ours: LoadRounds, theirs: list[tuple[Peer, LoadRounds]]) -> list[Row]:
    worst = "worst" if load.jobs <= FEW else "p99"
    note = ours.problem or ""
    rows = [
        Row(name=f"{load.name}: median", unit="ms", rounds=ours.median, note=note),
        Row(name=f"{load.name}: {worst}", unit="ms", rounds=ours.worst, note=note),
    ]
    for peer, found in theirs:
        bases = [_base(peer, found, found.median), _base(peer, found, found.worst)]
        both = zip(rows[:2], bases, strict=True)
        target = SERVED if peer.entry.keeps else None
        rows += [msgspec.structs.replace(row, base=base, target=target) for row, base in both]
    return rows


def _base(peer: Peer, found: LoadRounds, rounds: list[float]) -> Base:
    return peer.base(rounds) if found.problem is None else Base(peer.title, skip_reason=found.problem)
