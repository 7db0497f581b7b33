"""Groups: the cost of a member, the delay of the callback, and the memory of a large group."""

import json
import sys
from collections.abc import Iterator, Mapping

from bench import tasks
from bench.context import BenchContext
from bench.environment import bench_environment
from bench.peer import Peer
from bench.peer_entry import PeerRun
from bench.report.figures import Base, Row, Section, Target, bars, percentile
from bench.worker import CHUNK, Worker
from windlass.bench.process import BenchFailed, ChildProcess
from windlass.client.app import App
from windlass.client.groups.group import group
from windlass.core.moments import to_micros

UNIT = "jobs/s"
SMALL = 20
"""Members of a group whose callback is timed."""
STREAM = 10
"""A group streamed from a generator has this many times the members of a drain."""
MEMBERS = Target(0.9)
SOON = {True: Target(250.0, at_least=False), False: Target(100.0, at_least=False)}
"""Milliseconds from the last end to the start of `then`: on Redis, and elsewhere."""
MORE_MEMORY = Target(20.0, at_least=False)


REDIS = ("redis:", "rediss:")


def measure(context: BenchContext) -> Section:
    """The same number of jobs with and without a group, in turn, round by round; then the rest once each."""
    plain, grouped, peers = list[float](), list[float](), dict[str, list[float]]()
    for _ in context.rounds("groups"):
        context.progress("groups: independent jobs")
        plain.append(_drain(context, in_group=False))
        context.progress("groups: members of one group")
        grouped.append(_drain(context, in_group=True))
        for peer, share in _taking_part(context):
            context.progress(f"groups: {peer.name}")
            peers.setdefault(peer.name, []).append(_peer(context, peer, share))
    return _section(context, [*_rates(context, plain, grouped, peers), *_waits(context), *_memories(context)])


def _rates(
    context: BenchContext, plain: list[float], grouped: list[float], peers: Mapping[str, list[float]]
) -> Iterator[Row]:
    name = "members of one group"
    base = Base("independent jobs", plain)
    yield Row(name=base.name, unit=UNIT, rounds=plain)
    yield Row(name=name, unit=UNIT, rounds=grouped, base=base, target=MEMBERS)
    for peer in context.peers:
        if (share := peer.entry.group) is not None:
            theirs = peer.base(peers.get(peer.name, []))
            yield Row(name=name, unit=UNIT, rounds=grouped, base=theirs, target=share.target)


def _waits(context: BenchContext) -> Iterator[Row]:
    context.progress("groups: from the last end to the callback")
    waits, is_redis = _callbacks(context)
    name = "last end → `then` starts, "
    yield Row(name=f"{name}median", unit="ms", rounds=[percentile(waits, 50)])
    yield Row(name=f"{name}99th percentile", unit="ms", rounds=[percentile(waits, 99)], target=SOON[is_redis])


def _memories(context: BenchContext) -> Iterator[Row]:
    context.progress("groups: memory")
    members = STREAM * context.scale.drain
    stream, merge = _memory(context, "stream", members), _merging(context)
    yield Row(name=f"a generator of {members:,} members", unit="MiB", rounds=[stream], target=MORE_MEMORY)
    yield Row(name=f"merging {context.scale.drain:,} results", unit="MiB", rounds=[merge], target=MORE_MEMORY)


def _taking_part(context: BenchContext) -> Iterator[tuple[Peer, PeerRun]]:
    for peer in context.peers:
        if peer.runs and peer.entry.group is not None:
            yield peer, peer.entry.group


def _peer(context: BenchContext, peer: Peer, share: PeerRun) -> float:
    """From the first start of a member to the start of the callback."""
    jobs = context.of_peers(share.jobs)
    with context.peer_store() as peer_store:
        peer.run("group", peer_store, jobs)
        return peer.run("drain_group", peer_store, jobs).rate


def _drain(context: BenchContext, *, in_group: bool) -> float:
    jobs = context.scale.drain
    with context.store() as address:
        _fill(address, jobs, in_group=in_group)
        Worker(address, context.folder).drain()
        span = context.store_bench.span(address)
    expected = jobs + 2 if in_group else jobs
    if span.jobs != expected:
        raise BenchFailed(f"{expected} jobs were expected, {span.jobs} were completed")
    return span.rate


def _fill(address: str, jobs: int, *, in_group: bool) -> None:
    app = App(address)
    try:
        if in_group:
            tasks.app._relocate(address)
            group((tasks.link.job(1, tasks.FILLER) for _ in range(jobs)), then=tasks.ended.job()).enqueue()
            return
        for start in range(0, jobs, CHUNK):
            app.enqueue_many([tasks.link.job(1, tasks.FILLER) for _ in range(min(CHUNK, jobs - start))])
    finally:
        app.close()
        tasks.app.close()


def _callbacks(context: BenchContext) -> tuple[list[float], bool]:
    """Milliseconds from the end of the last member to the start of `then`, by the store's clock; whether on Redis."""
    found = []
    with context.store() as address, Worker(address, context.folder).start():
        tasks.app._relocate(address)
        try:
            for _ in range(context.scale.latency):
                jobs = [tasks.link.job(1, tasks.FILLER) for _ in range(SMALL)]
                handle = group(jobs, then=tasks.ended.job()).enqueue()
                handle.result(timeout=60)
                assert handle.then is not None
                last = max(to_micros(handle.member(i).job().finished_at) for i in range(SMALL))  # type: ignore[arg-type]
                started = handle.then.job().started_at
                assert started is not None
                found.append(max(0, to_micros(started) - last) / 1000)
        finally:
            tasks.app.close()
    return found, address.startswith(REDIS)


def _merging(context: BenchContext) -> float:
    with context.store() as address:
        _fill(address, context.scale.drain, in_group=True)
        Worker(address, context.folder).drain()
        return _child(context, address, "merge", context.scale.drain)


def _memory(context: BenchContext, what: str, members: int) -> float:
    with context.store() as address:
        return _child(context, address, what, members)


def _child(context: BenchContext, address: str, what: str, members: int) -> float:
    """MiB by which the peak of a process exceeds that after a small group."""
    command = [sys.executable, "-m", "bench.probes.group_memory", what, str(members)]
    environment = {**bench_environment(), "WINDLASS_STORE": address}
    with ChildProcess(command, context.folder, environment) as process:
        while not process.ends_within(1.0):
            pass
        process.raise_if_failed()
        return float(json.loads((context.folder / "group_memory.json").read_text()))


def _notes(context: BenchContext) -> Iterator[str]:
    for peer in context.peers:
        if (share := peer.entry.group) is not None:
            yield f"{peer.name}: {share.note}; {context.of_peers(share.jobs):,} members."


def _section(context: BenchContext, rows: list[Row]) -> Section:
    return Section(
        name="groups",
        title=f"Groups: {context.scale.drain:,} no-op members",
        rows=rows,
        charts=[bars("Jobs per second, durably completed", [row for row in rows if row.unit == UNIT])],
        notes=[
            "`windlass worker --until-empty` with default settings, from the first claim to the last completion, as "
            "the store recorded them. Everything is enqueued before.",
            f"Callbacks: groups of {SMALL} members, one after the other, by the store's clock.",
            *_notes(context),
            "Peers without a fan-in of this size are left out.",
            "Memory: beyond what the same process needs for a group of 100.",
        ],
    )
