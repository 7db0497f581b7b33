"""Drain: how fast a worker completes no-op jobs, durably, with history."""

import statistics

from windlass.bench import labour
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Base, Row, Section, Target, bars
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour

OF_BARE = Target(0.40)
OF_HUEY = Target(7.0)
OF_ONE_RUNNER = Target(1.0)
OF_ASYNC = Target(0.60)
UNIT = "jobs/s"


def measure(ground: Ground) -> Section:
    """One runner, two runners, threads, the bare loop and Huey, one after the other, round by round."""
    one, two, threads = list[float](), list[float](), list[float]()
    bare, huey, walls = list[float](), list[float](), list[float]()
    for _ in ground.rounds("drain"):
        bare.append(ground.yardstick.bare_drain(ground.scale.drain).rate)
        for rates, flags, kind in ((one, (), False), (two, ("--processes", "2"), False), (threads, (), True)):
            rate, wall = _drain(ground, flags, threads=kind)
            rates.append(rate)
            walls.append(wall)
        if ground.peers.huey.why_not is None:
            huey.append(_huey(ground))
    return _section(ground, (one, two, threads, bare, huey), walls)


def _drain(ground: Ground, flags: tuple[str, ...], *, threads: bool) -> tuple[float, float]:
    """Jobs per second from the first claim to the last completion, and the seconds of the whole process."""
    with ground.store() as address:
        labour.fill(address, ground.scale.drain, threads=threads)
        drained = Labour(address, ground.folder).drain(*flags)
        span = ground.yardstick.span(address)
    if span.jobs != ground.scale.drain:
        raise BenchFailed(f"{ground.scale.drain} jobs were handed in, {span.jobs} were completed")
    return span.rate, drained.wall


def _huey(ground: Ground) -> float:
    folder = ground.scratch()
    ground.peers.huey.run("fill", folder, ground.scale.peer_drain)
    return ground.peers.huey.run("drain", folder, ground.scale.peer_drain).rate


def _section(ground: Ground, rates: tuple[list[float], ...], walls: list[float]) -> Section:
    one, two, threads, bare, huey = rates
    peer = ground.peers.huey
    name = "one runner, async"
    rows = [
        Row(name=name, unit=UNIT, rounds=one, base=Base("bare loop", bare), target=OF_BARE),
        Row(name=name, unit=UNIT, rounds=one, base=Base(peer.title, huey, peer.why_not), target=OF_HUEY),
        Row(name="two runners, async", unit=UNIT, rounds=two, base=Base(name, one), target=OF_ONE_RUNNER),
        Row(name="one runner, threads", unit=UNIT, rounds=threads, base=Base(name, one), target=OF_ASYNC),
    ]
    return Section(
        name="drain",
        title=f"Drain: {ground.scale.drain:,} no-op jobs",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, as a process of its own. The time runs from the "
            "first claim to the last completion, as the store recorded them.",
            f"By the wall clock, with start-up and shut-down, one runner took {statistics.median(walls[::3]):.1f} s.",
            "The bare loop is the driver alone: batches of 100, completion of one batch and claim of the next in one "
            "flushed transaction, rows moved to history.",
            f"Huey drains {ground.scale.peer_drain:,} tasks with its consumer's defaults (one thread) and without "
            "its log line per task; it keeps no history.",
        ],
    )
