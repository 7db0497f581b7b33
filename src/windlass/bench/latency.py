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

IDLE = Target(2.0, at_least=False)
BARE = "bare wake-up"
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

    def add(self, taken: list[float]) -> None:
        """One round's milliseconds."""
        self.samples += taken
        self.median.append(percentile(taken, 50))
        self.worst.append(percentile(taken, 99))


def measure(ground: Ground) -> Section:
    """Windlass and its peers, one after the other, round by round."""
    peers = ground.peers
    ours, theirs, bare = Found(), {peer.name: Found() for peer in peers}, Found()
    for number in ground.rounds("latency, Windlass"):
        watch(ground, ours)
        if (taken := ground.yardstick.bare_wake(ground.scale.latency)) is not None:
            bare.add(taken)
        for peer in peers:
            if peer.runs:
                ground.say(f"latency, {peer.name}: round {number} of {ground.scale.rounds}")
                with _peer(ground, peer) as contestant:
                    _watch(ground, contestant, theirs[peer.name])
    return _section(ground, ours, bare, [(peer, theirs[peer.name]) for peer in peers])


def watch(ground: Ground, found: Found) -> None:
    """One round of Windlass."""
    with _windlass(ground) as contestant:
        _watch(ground, contestant, found)


@contextmanager
def _windlass(ground: Ground) -> Iterator[Contestant]:
    with ground.store() as made:
        address = ground.route(made)
        stamps = ground.scratch() / "stamps"
        environment = {"WINDLASS_STORE": address, tasks.STAMPS: str(stamps)}

        def produce(jobs: int) -> None:
            command = [sys.executable, "-m", "windlass.bench.produce", str(jobs)]
            finish(Served(command, ground.folder, environment))

        with Labour(address, ground.folder, environment).worker() as served:
            yield Contestant(served, stamps, produce)


@contextmanager
def _peer(ground: Ground, peer: Peer) -> Iterator[Contestant]:
    with ground.place() as place:

        def produce(jobs: int) -> None:
            peer.run("produce", place, jobs)

        with Served(peer.command("serve", place), place.folder, peer.surroundings(place)) as served:
            yield Contestant(served, place.folder / "stamps", produce, PEER_HEAD_START)


def finish(served: Served) -> None:
    """Wait for a producer."""
    with served:
        if not served.ends_within(PATIENCE):
            raise BenchFailed(f"a producer did not end within {PATIENCE:g} s")
        served.check()


def _watch(ground: Ground, contestant: Contestant, found: Found) -> None:
    """One round: a first job to warm up, the cost of doing nothing, then jobs with pauses."""
    served, jobs = contestant.served, ground.scale.latency
    time.sleep(contestant.head_start)
    contestant.produce(1)
    stamps(served, contestant.stamps, 1)
    time.sleep(SETTLE_SECONDS)
    began, used = time.perf_counter(), process.cpu_of_tree(served.pid)
    time.sleep(ground.scale.idle_seconds)
    idle = process.cpu_of_tree(served.pid) - used
    found.idle.append(100 * idle / (time.perf_counter() - began))
    contestant.produce(jobs)
    taken = stamps(served, contestant.stamps, jobs + 1)[1:]
    found.add(taken)


def stamps(served: Served, path: Path, jobs: int) -> list[float]:
    """Milliseconds from hand-in to start, in the order of hand-in, once all have started."""
    deadline = time.monotonic() + PATIENCE
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= jobs:
            pairs = sorted(tuple(map(int, line.split())) for line in lines)
            return [(started - sent) / 1e6 for sent, started in pairs]
        served.check()
        if time.monotonic() > deadline:
            raise BenchFailed(f"{len(lines)} of {jobs} jobs had started after {PATIENCE:g} s")
        time.sleep(0.05)


def _section(ground: Ground, ours: Found, bare: Found, theirs: list[tuple[Peer, Found]]) -> Section:
    rows = _targets(ground, ours, bare)
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
        title=f"Latency: {ground.scale.latency} jobs handed in to an idle worker in another process",
        rows=rows,
        charts=[Lines("From hand-in to the handler's start", "percent of jobs", "ms", lines)],
        notes=[
            "From just before the call that hands in, so that the flush to disk is part of it, to the handler's "
            "first line, on the clock that all processes share. Pauses of 50 to 150 ms between jobs, for all.",
            "The processor time while idle is that of the worker's whole process tree (a supervisor and a runner), "
            f"over {ground.scale.idle_seconds:g} s.",
            *([ground.yardstick.goals.bare_wake] if bare.samples else []),
            *(peer.entry.note for peer, _ in theirs),
        ],
    )


def _targets(ground: Ground, ours: Found, bare: Found) -> list[Row]:
    """Against the bare wake-up and our own median; in milliseconds where the store cannot notify."""
    goals = ground.yardstick.goals
    wake = Base(BARE, bare.median) if bare.samples else None
    median = Base("median", ours.median) if bare.samples else None
    rows = [
        Row(name="median", unit="ms", rounds=ours.median, base=wake, target=goals.median),
        Row(name="p99", unit="ms", rounds=ours.worst, base=median, target=goals.worst),
        Row(name="processor while idle", unit="% of a core", rounds=ours.idle, target=IDLE),
    ]
    if bare.samples:
        rows.append(Row(name="p99", unit="ms", rounds=ours.worst, base=Base(f"{BARE}, p99", bare.worst)))
    return rows


def _distribution(samples: list[float]) -> list[tuple[float, float]]:
    return [(float(percent), percentile(samples, percent)) for percent in range(1, 101)]
