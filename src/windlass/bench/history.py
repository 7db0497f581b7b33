"""History: whether a drain is as fast when millions of jobs have ended before it."""

import statistics

from windlass.bench import labour
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Bars, Base, Row, Section
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour

UNIT = "jobs/s"


def measure(ground: Ground) -> Section:
    """The same drain after each number of ended jobs, in turn, round by round."""
    rates: dict[str, list[float]] = {_name(ended): [] for ended in ground.scale.histories}
    for _ in ground.rounds("history"):
        for ended in ground.scale.histories:
            ground.say(f"history: a drain, {_name(ended)}")
            rates[_name(ended)].append(_drain(ground, ended))
    return _section(ground, rates)


def _name(ended: int) -> str:
    return f"{ended:,} in history"


def _drain(ground: Ground, ended: int) -> float:
    jobs = ground.scale.drain
    with ground.store() as address:
        labour.fill(address, jobs)
        if ended:
            ground.yardstick.fill_history(address, ended)
        Labour(address, ground.folder).drain()
        finishes = ground.yardstick.finishes(address)
        span = ground.yardstick.span(address)
    # What was put there directly ended in one moment, before the worker began.
    if span.jobs != jobs + ended:
        raise BenchFailed(f"{jobs} jobs were handed in, {span.jobs - ended} were completed")
    return rate(finishes, ended)


def rate(finishes: list[tuple[float, int]], ended: int) -> float:
    """Jobs per second from the first completion to the last, without those that had ended before."""
    ours = finishes[1:] if ended else finishes
    jobs = sum(count for _, count in ours[1:])
    return jobs / (ours[-1][0] - ours[0][0])


def _section(ground: Ground, rates: dict[str, list[float]]) -> Section:
    first = _name(ground.scale.histories[0])
    base, target = Base(first, rates[first]), ground.yardstick.goals.history
    rows = [Row(name=first, unit=UNIT, rounds=rates[first])]
    rows += [
        Row(name=name, unit=UNIT, rounds=rounds, base=base, target=target)
        for name, rounds in rates.items()
        if name != first
    ]
    bars = [(name, statistics.median(rounds)) for name, rounds in rates.items()]
    return Section(
        name="history",
        title=f"History: a drain of {ground.scale.drain:,} jobs after many others",
        rows=rows,
        charts=[Bars("Drain by what is in history", UNIT, bars, len(bars))],
        notes=[
            "`windlass worker --until-empty` with default settings. From the first completion to the last, as the "
            "store recorded them. The jobs in history are put there directly, not by draining them.",
        ],
    )
