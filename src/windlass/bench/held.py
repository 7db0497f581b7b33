"""Held: a drain and a trickle while somebody else holds a snapshot open, so that nothing can be cleaned up."""

import contextlib
import sys
from collections.abc import Iterator

import msgspec

from windlass.bench import labour, tasks
from windlass.bench.contest import BenchFailed, Served
from windlass.bench.figures import Base, Row, Section, Target, bars, percentile
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour
from windlass.bench.latency import finish, stamps
from windlass.bench.yardstick import Span

UNIT = "jobs/s"


class Pace(msgspec.Struct):
    """Rates of each round: of the whole drain, of its first jobs, of its last."""

    whole: list[float] = []
    first: list[float] = []
    last: list[float] = []
    median: list[float] = []
    worst: list[float] = []
    """Of the trickle, in milliseconds."""


def measure(ground: Ground) -> Section:
    """The same drain and the same trickle with and without, alternately."""
    if not ground.yardstick.goals.snapshots:
        return Section(name="held", title="Held", rows=[], notes=["Not run: this store has no snapshots."])
    free, held = Pace(), Pace()
    for _ in ground.rounds("held"):
        for pace, holding in ((free, False), (held, True)):
            how = "under a held snapshot" if holding else "undisturbed"
            ground.say(f"held: a drain {how}")
            _drain(ground, pace, holding=holding)
            ground.say(f"held: a trickle {how}")
            _trickle(ground, pace, holding=holding)
    return _section(ground, free, held)


@contextlib.contextmanager
def _holding(ground: Ground, address: str, *, holding: bool) -> Iterator[None]:
    with ground.yardstick.hold_snapshot(address) if holding else contextlib.nullcontext():
        yield


def _drain(ground: Ground, pace: Pace, *, holding: bool) -> None:
    jobs, edge = ground.scale.held, ground.scale.edge
    with ground.store() as address:
        labour.fill(address, jobs)
        with _holding(ground, address, holding=holding):
            Labour(address, ground.folder).drain()
        span, finishes = ground.yardstick.span(address), ground.yardstick.finishes(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{jobs} jobs were handed in, {span.jobs} were completed")
    pace.whole.append(span.rate)
    first, last = edges(span, finishes, edge)
    pace.first.append(first)
    pace.last.append(last)


def edges(span: Span, finishes: list[tuple[float, int]], edge: int) -> tuple[float, float]:
    """Jobs per second of the first `edge` jobs of a drain, and of the last."""
    done, moments = 0, [(span.first_claim, 0)]
    for moment, jobs in finishes:
        done += jobs
        moments.append((moment, done))
    until = next(each for each in moments if each[1] >= edge)
    since = next(each for each in reversed(moments) if each[1] <= done - edge)
    end = moments[-1]
    return until[1] / (until[0] - span.first_claim), (end[1] - since[1]) / (end[0] - since[0])


def _trickle(ground: Ground, pace: Pace, *, holding: bool) -> None:
    jobs = int(ground.scale.trickle_rate * ground.scale.trickle_seconds)
    with ground.store() as address:
        # A first job makes the tables: the snapshot is held over jobs, not over their making.
        labour.fill(address, 1)
        path = ground.scratch() / "stamps"
        environment = {"WINDLASS_STORE": address, tasks.STAMPS: str(path)}
        with (
            Labour(address, ground.folder, environment).worker() as served,
            _holding(ground, address, holding=holding),
        ):
            # One ahead: the worker's start-up is not what is measured.
            _hand_in(ground, environment, 1)
            stamps(served, path, 1)
            _hand_in(ground, environment, jobs)
            taken = stamps(served, path, jobs + 1)[1:]
    pace.median.append(percentile(taken, 50))
    pace.worst.append(percentile(taken, 99))


def _hand_in(ground: Ground, environment: dict[str, str], jobs: int) -> None:
    command = [sys.executable, "-m", "windlass.bench.produce", str(jobs), str(ground.scale.trickle_rate)]
    finish(Served(command, ground.folder, environment))


def _section(ground: Ground, free: Pace, held: Pace) -> Section:
    goals, scale = ground.yardstick.goals, ground.scale
    edge = f"{scale.edge:,}"
    drains = [
        _row("drain, held", held.whole, Base("drain, undisturbed", free.whole), goals.held),
        _row(f"last {edge}, held", held.last, Base(f"first {edge}, held", held.first), goals.held),
        _row(f"last {edge}, undisturbed", free.last, Base(f"first {edge}, undisturbed", free.first)),
    ]
    trickles = [
        _row("trickle, held: median", held.median, Base("undisturbed: median", free.median), unit="ms"),
        _row("trickle, held: p99", held.worst, Base("undisturbed: p99", free.worst), goals.trickle, unit="ms"),
    ]
    return Section(
        name="held",
        title=f"Held snapshot: {scale.held:,} jobs drained, {scale.trickle_rate} jobs/s trickling",
        rows=[*drains, *trickles],
        charts=[bars("Drain", drains), bars("Trickle: from hand-in to start", trickles)],
        notes=[
            "Another connection holds a snapshot from before the worker starts to after it ends, as a long report or "
            "a forgotten session does: no row that ends in between can be cleaned up.",
            f"The trickle: {scale.trickle_rate} jobs/s for {scale.trickle_seconds:g} s from another process, one by "
            "one; from just before the call that hands in to the handler's first line.",
        ],
    )


def _row(name: str, rounds: list[float], base: Base, target: Target | None = None, unit: str = UNIT) -> Row:
    return Row(name=name, unit=unit, rounds=rounds, base=base, target=target)
