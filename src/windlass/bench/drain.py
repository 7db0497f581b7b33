"""Drain: how fast a worker completes no-op jobs, durably, with history."""

import statistics
from collections.abc import Iterator

import msgspec

from windlass.bench import labour
from windlass.bench.contest import BenchFailed, Peer
from windlass.bench.figures import Base, Row, Section, bars
from windlass.bench.goals import Share
from windlass.bench.ground import Ground
from windlass.bench.labour import Labour

UNIT = "jobs/s"
LEAST_SECONDS = 0.01
"""Start-up varies by more than that: a quick run may come out with less than nothing."""
ONE = "one runner, async"


class Rates(msgspec.Struct):
    """Jobs per second, of each round; those of peers by their names."""

    one: list[float] = []
    two: list[float] = []
    threads: list[float] = []
    bare: list[float] = []
    together: list[float] = []
    peers: dict[str, list[float]] = {}
    peers_threads: dict[str, list[float]] = {}
    kept_wall: list[float] = []
    unkept_wall: list[float] = []
    """By the wall clock less start-up and shut-down: without history there is no other."""
    walls: list[float] = []


def measure(ground: Ground) -> Section:
    """One runner, two runners, threads, no history, the bare loops and the peers, one after the other."""
    rates = Rates()
    for _ in ground.rounds("drain"):
        _ours(ground, rates)
        for peer, share in _taking_part(ground, threads=False):
            ground.say(f"drain: {peer.name}")
            rates.peers.setdefault(peer.name, []).append(_peer(ground, peer, share, "drain"))
        for peer, share in _taking_part(ground, threads=True):
            ground.say(f"drain: {peer.name}, threads")
            rates.peers_threads.setdefault(peer.name, []).append(_peer(ground, peer, share, "threads"))
    return _section(ground, rates)


def _ours(ground: Ground, rates: Rates) -> None:
    jobs, yardstick = ground.scale.drain, ground.yardstick
    rates.bare.append(yardstick.bare_drain(jobs).rate)
    rate, wall = drain(ground)
    rates.one.append(rate)
    rates.walls.append(wall)
    unkept, empty = _wall(ground, jobs), _wall(ground, 0)
    rates.kept_wall.append(jobs / max(wall - empty, LEAST_SECONDS))
    rates.unkept_wall.append(jobs / max(unkept - empty, LEAST_SECONDS))
    if (together := yardstick.bare_together(jobs)) is not None:
        rates.together.append(together)
    rates.two.append(drain(ground, ("--processes", "2"))[0])
    rates.threads.append(drain(ground, threads=True)[0])


def drain(ground: Ground, flags: tuple[str, ...] = (), *, threads: bool = False) -> tuple[float, float]:
    """Jobs per second from the first claim to the last completion, and the seconds of the whole process."""
    with ground.store() as address:
        labour.fill(address, ground.scale.drain, threads=threads)
        drained = Labour(ground.route(address), ground.folder).drain(*flags)
        span = ground.yardstick.span(address)
    if span.jobs != ground.scale.drain:
        raise BenchFailed(f"{ground.scale.drain} jobs were handed in, {span.jobs} were completed")
    return span.rate, drained.wall


def _wall(ground: Ground, jobs: int) -> float:
    """Seconds of the whole process where no job is kept."""
    with ground.store() as address:
        labour.keep_nothing(address)
        labour.fill(address, jobs)
        return Labour(address, ground.folder).drain().wall


def _taking_part(ground: Ground, *, threads: bool) -> Iterator[tuple[Peer, Share]]:
    for peer in ground.peers:
        share = peer.entry.threads if threads else peer.entry.drain
        if peer.runs and share is not None:
            yield peer, share


def _peer(ground: Ground, peer: Peer, share: Share, verb: str) -> float:
    jobs = ground.of_peers(share.jobs)
    with ground.place() as place:
        peer.run("bulk" if peer.entry.bulk else "fill", place, jobs)
        return peer.run(verb, place, jobs).rate


def _section(ground: Ground, rates: Rates) -> Section:
    rows = _rows(ground, rates)
    return Section(
        name="drain",
        title=f"Drain: {ground.scale.drain:,} no-op jobs",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, as a process of its own. The time runs from the "
            "first claim to the last completion, as the store recorded them.",
            f"By the wall clock, start-up and all, one runner took {statistics.median(rates.walls):.1f} s.",
            "Without history the store records nothing: there both figures are by the wall clock, less that of a "
            "worker that starts, finds nothing and ends.",
            ground.yardstick.goals.bare,
            "A peer's drain runs from its first start until its own tables say that every job is completed; jobs per "
            "peer: " + ", ".join(_sizes(ground)) + ".",
            *(peer.entry.note for peer in ground.peers if peer.entry.drain),
        ],
    )


def _rows(ground: Ground, rates: Rates) -> list[Row]:
    goals, one = ground.yardstick.goals, Base(ONE, rates.one)
    both = Base("two bare loops together", rates.together) if rates.together else one
    rows = [Row(name=ONE, unit=UNIT, rounds=rates.one, base=Base("bare loop", rates.bare), target=goals.drain)]
    for peer in ground.peers:
        if (share := peer.entry.drain) is not None:
            base = peer.base(rates.peers.get(peer.name, []))
            rows.append(Row(name=ONE, unit=UNIT, rounds=rates.one, base=base, target=share.target))
    kept = Base(f"{ONE}, by the wall clock", rates.kept_wall)
    rows += [
        Row(name="two runners, async", unit=UNIT, rounds=rates.two, base=both, target=goals.two_runners),
        Row(name="one runner, no history", unit=UNIT, rounds=rates.unkept_wall, base=kept, target=goals.unkept),
        Row(name="one runner, threads", unit=UNIT, rounds=rates.threads, base=one, target=goals.threads),
    ]
    for peer in ground.peers:
        if (share := peer.entry.threads) is not None:
            base = peer.base(rates.peers_threads.get(peer.name, []), "threads")
            rows.append(
                Row(name="one runner, threads", unit=UNIT, rounds=rates.threads, base=base, target=share.target)
            )
    return rows


def _sizes(ground: Ground) -> Iterator[str]:
    for peer in ground.peers:
        if (share := peer.entry.drain) is not None:
            yield f"{peer.name} {ground.of_peers(share.jobs):,}"
