"""Drain: how fast a worker completes no-op jobs, durably, with history."""

import statistics
from collections.abc import Iterator

import msgspec

from bench.context import BenchContext
from bench.peer import Peer
from bench.peer_entry import PeerRun
from bench.report.figures import Base, Row, Section, bars
from bench.worker import Worker, fill, keep_nothing
from windlass.bench.process import BenchFailed

UNIT = "jobs/s"
MIN_SECONDS = 0.01
"""Start-up varies by more than that: the result of a quick run may be negative."""
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
    no_history_wall: list[float] = []
    """By the wall clock without start-up and shut-down: without history there is no other clock."""
    walls: list[float] = []


def measure(context: BenchContext) -> Section:
    """One runner, two runners, threads, no history, the bare loops and the peers, one after the other."""
    rates = Rates()
    for _ in context.rounds("drain"):
        _ours(context, rates)
        for peer, share in _taking_part(context, threads=False):
            context.progress(f"drain: {peer.name}")
            rates.peers.setdefault(peer.name, []).append(_peer(context, peer, share, "drain"))
        for peer, share in _taking_part(context, threads=True):
            context.progress(f"drain: {peer.name}, threads")
            rates.peers_threads.setdefault(peer.name, []).append(_peer(context, peer, share, "threads"))
    return _section(context, rates)


def _ours(context: BenchContext, rates: Rates) -> None:
    jobs, store_bench = context.scale.drain, context.store_bench
    rates.bare.append(store_bench.bare_drain(jobs).rate)
    rate, wall = drain(context)
    rates.one.append(rate)
    rates.walls.append(wall)
    no_history, empty = _wall(context, jobs), _wall(context, 0)
    rates.kept_wall.append(jobs / max(wall - empty, MIN_SECONDS))
    rates.no_history_wall.append(jobs / max(no_history - empty, MIN_SECONDS))
    if (together := store_bench.bare_together(jobs)) is not None:
        rates.together.append(together)
    rates.two.append(drain(context, ("--processes", "2"))[0])
    rates.threads.append(drain(context, threads=True)[0])


def drain(context: BenchContext, flags: tuple[str, ...] = (), *, threads: bool = False) -> tuple[float, float]:
    """Jobs per second from the first claim to the last completion, and the seconds of the whole process."""
    with context.store() as address:
        fill(address, context.scale.drain, threads=threads)
        drained = Worker(context.route(address), context.folder).drain(*flags)
        span = context.store_bench.span(address)
    if span.jobs != context.scale.drain:
        raise BenchFailed(f"{context.scale.drain} jobs were enqueued, {span.jobs} were completed")
    return span.rate, drained.wall


def _wall(context: BenchContext, jobs: int) -> float:
    """Seconds of the whole process where no job is kept."""
    with context.store() as address:
        keep_nothing(address)
        fill(address, jobs)
        return Worker(address, context.folder).drain().wall


def _taking_part(context: BenchContext, *, threads: bool) -> Iterator[tuple[Peer, PeerRun]]:
    for peer in context.peers:
        share = peer.entry.threads if threads else peer.entry.drain
        if peer.runs and share is not None:
            yield peer, share


def _peer(context: BenchContext, peer: Peer, share: PeerRun, verb: str) -> float:
    jobs = context.of_peers(share.jobs)
    with context.peer_store() as peer_store:
        peer.run("bulk" if peer.entry.bulk else "fill", peer_store, jobs)
        return peer.run(verb, peer_store, jobs).rate


def _section(context: BenchContext, rates: Rates) -> Section:
    rows = _rows(context, rates)
    return Section(
        name="drain",
        title=f"Drain: {context.scale.drain:,} no-op jobs",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", rows)],
        notes=[
            "`windlass worker --until-empty` with default settings, as a process of its own. The time runs from the "
            "first claim to the last completion, as the store recorded them.",
            f"By the wall clock, start-up included, one runner took {statistics.median(rates.walls):.1f} s.",
            "Without history the store records nothing: there both figures are by the wall clock, less that of a "
            "worker that starts, finds nothing and ends.",
            context.store_bench.targets.bare,
            "A peer's drain runs from its first start until its own tables say that every job is completed; jobs per "
            "peer: " + ", ".join(_sizes(context)) + ".",
            *(peer.entry.note for peer in context.peers if peer.entry.drain),
        ],
    )


def _rows(context: BenchContext, rates: Rates) -> list[Row]:
    targets, one = context.store_bench.targets, Base(ONE, rates.one)
    both = Base("two bare loops together", rates.together) if rates.together else one
    rows = [Row(name=ONE, unit=UNIT, rounds=rates.one, base=Base("bare loop", rates.bare), target=targets.drain)]
    for peer in context.peers:
        if (share := peer.entry.drain) is not None:
            base = peer.base(rates.peers.get(peer.name, []))
            rows.append(Row(name=ONE, unit=UNIT, rounds=rates.one, base=base, target=share.target))
    kept = Base(f"{ONE}, by the wall clock", rates.kept_wall)
    rows += [
        Row(name="two runners, async", unit=UNIT, rounds=rates.two, base=both, target=targets.two_runners),
        Row(
            name="one runner, no history",
            unit=UNIT,
            rounds=rates.no_history_wall,
            base=kept,
            target=targets.no_history,
        ),
        Row(name="one runner, threads", unit=UNIT, rounds=rates.threads, base=one, target=targets.threads),
    ]
    for peer in context.peers:
        if (share := peer.entry.threads) is not None:
            base = peer.base(rates.peers_threads.get(peer.name, []), "threads")
            rows.append(
                Row(name="one runner, threads", unit=UNIT, rounds=rates.threads, base=base, target=share.target)
            )
    return rows


def _sizes(context: BenchContext) -> Iterator[str]:
    for peer in context.peers:
        if (share := peer.entry.drain) is not None:
            yield f"{peer.name} {context.of_peers(share.jobs):,}"
