"""Latency: from the call that hands a job in to the first line of its handler, in another process that is idle."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from windlass.bench import process, tasks
from windlass.bench.contest import PATIENCE, BenchFailed, Peer, Served
from windlass.bench.figures import Base, Line, Lines, Row, Section, Target, percentile
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour

MEDIAN, WORST, IDLE = Target(5.0, at_least=False), Target(20.0, at_least=False), Target(2.0, at_least=False)
SETTLE_SECONDS = 0.5
PEER_HEAD_START = 3.0


class Contestant(msgspec.Struct, frozen=True):
    """A worker that waits, and how to hand jobs in to it; its handlers leave stamps in the folder."""

    served: Served
    stamps: Path
    produce: Callable[[int], None]
    head_start: float = 0.0
    """Seconds before anybody may hand in: some workers make their tables first."""


class Found(msgspec.Struct):
    """What was seen of one contestant, over all rounds."""

    median: list[float] = []
    worst: list[float] = []
    idle: list[float] = []
    samples: list[float] = []


def measure(ground: Ground) -> Section:
    """Windlass and its peers, one after the other, round by round."""
    peers = (ground.peers.huey, ground.peers.dbos)
    ours, theirs = Found(), {peer.name: Found() for peer in peers}
    for number in ground.rounds("latency, Windlass"):
        with _windlass(ground) as contestant:
            _watch(ground, contestant, ours)
        for peer in peers:
            if peer.why_not is None:
                ground.say(f"latency, {peer.name}: round {number} of {ground.scale.rounds}")
                with _peer(ground, peer) as contestant:
                    _watch(ground, contestant, theirs[peer.name])
    return _section(ground, ours, [(peer, theirs[peer.name]) for peer in peers])


@contextmanager
def _windlass(ground: Ground) -> Iterator[Contestant]:
    with ground.store() as address:
        stamps = ground.scratch() / "stamps"
        environment = {"WINDLASS_STORE": address, tasks.STAMPS: str(stamps)}

        def produce(jobs: int) -> None:
            command = [sys.executable, "-m", "windlass.bench.produce", str(jobs)]
            _finish(Served(command, ground.folder, environment))

        with Labour(address, ground.folder, environment).worker() as served:
            yield Contestant(served, stamps, produce)


@contextmanager
def _peer(ground: Ground, peer: Peer) -> Iterator[Contestant]:
    folder = ground.scratch()

    def produce(jobs: int) -> None:
        peer.run("produce", folder, jobs)

    with Served(peer.command("serve", folder), folder, {}) as served:
        yield Contestant(served, folder / "stamps", produce, PEER_HEAD_START)


def _finish(served: Served) -> None:
    with served:
        if not served.ends_within(PATIENCE):
            raise BenchFailed(f"a producer did not end within {PATIENCE:g} s")
        served.check()


def _watch(ground: Ground, contestant: Contestant, found: Found) -> None:
    """One round: a first job to warm up, the cost of doing nothing, then jobs with pauses."""
    served, jobs = contestant.served, ground.scale.latency
    time.sleep(contestant.head_start)
    contestant.produce(1)
    _stamps(contestant, 1)
    time.sleep(SETTLE_SECONDS)
    began, used = time.perf_counter(), process.cpu_of_tree(served.pid)
    time.sleep(ground.scale.idle_seconds)
    idle = process.cpu_of_tree(served.pid) - used
    found.idle.append(100 * idle / (time.perf_counter() - began))
    contestant.produce(jobs)
    taken = _stamps(contestant, jobs + 1)[1:]
    found.samples += taken
    found.median.append(percentile(taken, 50))
    found.worst.append(percentile(taken, 99))


def _stamps(contestant: Contestant, jobs: int) -> list[float]:
    """Milliseconds from hand-in to start, in the order of hand-in, once all have started."""
    deadline = time.monotonic() + PATIENCE
    while True:
        lines = contestant.stamps.read_text().splitlines() if contestant.stamps.exists() else []
        if len(lines) >= jobs:
            pairs = sorted(tuple(map(int, line.split())) for line in lines)
            return [(started - sent) / 1e6 for sent, started in pairs]
        contestant.served.check()
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(lines)} of {jobs} jobs had started after {PATIENCE:g} s")
        time.sleep(0.05)


def _section(ground: Ground, ours: Found, theirs: list[tuple[Peer, Found]]) -> Section:
    rows = [
        Row(name="median", unit="ms", rounds=ours.median, target=MEDIAN),
        Row(name="p99", unit="ms", rounds=ours.worst, target=WORST),
        Row(name="processor while idle", unit="% of a core", rounds=ours.idle, target=IDLE),
    ]
    for peer, found in theirs:
        rows += [
            Row(name="median", unit="ms", rounds=ours.median, base=_base(peer, found.median)),
            Row(name="p99", unit="ms", rounds=ours.worst, base=_base(peer, found.worst)),
            Row(name="processor while idle", unit="% of a core", rounds=ours.idle, base=_base(peer, found.idle)),
        ]
    shown = [("Windlass", ours), *((peer.title, found) for peer, found in theirs if found.samples)]
    lines = [Line(name, _distribution(found.samples)) for name, found in shown]
    return Section(
        name="latency",
        title=f"Latency: {ground.scale.latency} jobs handed in to an idle worker in another process",
        rows=rows,
        charts=[Lines("From hand-in to the handler's start", "percent of jobs", "ms", lines)],
        notes=[
            "From just before the call that hands in, so that the flush to disk is part of it, to the handler's "
            "first line, on the clock that all processes share. Pauses of 50 to 150 ms between jobs, for all.",
            "The processor time while idle is that of the worker's whole process tree (a supervisor and a runner), "
            f"over {ground.scale.idle_seconds:g} s.",
            "Huey looks for work every 0.1 s and, after a longer silence, more rarely (up to 10 s); DBOS looks every "
            "second. Both at their defaults.",
        ],
    )


def _base(peer: Peer, rounds: list[float]) -> Base:
    return Base(peer.title, rounds, peer.why_not)


def _distribution(samples: list[float]) -> list[tuple[float, float]]:
    return [(float(percent), percentile(samples, percent)) for percent in range(1, 101)]
