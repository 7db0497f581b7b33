"""Cluster: twelve queues over the three masters of a Redis Cluster, and one hot queue in one slot of it."""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from bench import tasks
from bench.context import BenchContext
from bench.report.figures import Base, Row, Section, bars
from bench.worker import Worker
from windlass.client.app import App

UNIT, PER_JOB = "jobs/s", "µs of Redis per job"
TITLE = "Redis Cluster: three masters"
QUEUES, MASTERS = 12, 3
CHUNK = 5_000


class Found(msgspec.Struct):
    """Of each round."""

    rate: list[float] = []
    cost: list[float] = []
    """Processor time per job of all masters."""
    busiest: list[float] = []
    """The share of the busiest master."""


def measure(context: BenchContext) -> Section:
    """Twelve queues on a cluster, the same twelve on one server, and one queue on a cluster."""
    with context.store() as address:
        if not address.startswith("redis:"):
            return Section(name="cluster", title=TITLE, rows=[], notes=["Not run: for Redis only."])
    spread, single, hot = Found(), Found(), Found()
    nodes: dict[str, list[float]] = {}
    with _cluster() as cluster:
        queues = even_names(cluster)
        for number in context.rounds("cluster"):
            with context.store() as address:
                _drain(context, single, address, queues, [])
            url = f"{cluster.url}?prefix=bench{number}"
            used = _drain(context, spread, f"{url}s", queues, cluster.masters())
            for place, seconds in enumerate(used, start=1):
                nodes.setdefault(f"master {place}", []).append(1e6 * seconds * MASTERS / context.scale.drain)
            _drain(context, hot, f"{url}h", queues[:1], cluster.masters())
    return _section(context, spread, single, hot, nodes)


@contextmanager
def _cluster() -> Iterator[Any]:
    from tests.support.servers.redis_cluster import new_cluster_without_replicas

    cluster = new_cluster_without_replicas()
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.remove()


def even_names(cluster: Any) -> list[str]:
    """Twelve names, of which each master has four."""
    found: dict[int, list[str]] = {}
    number = 0
    while sum(map(len, found.values())) < QUEUES:
        name, number = f"type-{number}", number + 1
        mine = found.setdefault(cluster.master_of(f"{{{name}}}").port, [])
        if len(mine) < QUEUES // MASTERS:
            mine.append(name)
    return [name for names in found.values() for name in names]


def _drain(context: BenchContext, found: Found, address: str, queues: list[str], masters: list[Any]) -> list[float]:
    """Processor seconds of each master."""
    jobs = context.scale.drain // len(queues) * len(queues)
    _fill(address, queues, jobs)
    before = [_used(node) for node in masters]
    drained = Worker(address, context.folder).drain("--queues", ",".join(queues), "--processes", "2")
    used = [_used(node) - at_first for node, at_first in zip(masters, before, strict=True)]
    found.rate.append(jobs / drained.wall)
    if used:
        found.cost.append(1e6 * sum(used) / jobs)
        found.busiest.append(max(used) / sum(used))
    return used


def _fill(address: str, queues: list[str], jobs: int) -> None:
    app = App(address)
    try:
        for queue in queues:
            left = jobs // len(queues)
            while left:
                part = min(CHUNK, left)
                app.enqueue_many(tasks.noop.using(queue=queue).job(1, tasks.FILLER) for _ in range(part))
                left -= part
    finally:
        app.close()


def _used(node: Any) -> float:
    info = node.info()
    return float(info["used_cpu_user"] + info["used_cpu_sys"])


def _section(
    context: BenchContext, spread: Found, single: Found, hot: Found, nodes: dict[str, list[float]]
) -> Section:
    work = [
        Row(
            name="twelve queues over three masters",
            unit=UNIT,
            rounds=spread.rate,
            base=Base("twelve queues on one server", single.rate),
        ),
        Row(
            name="one queue: one slot of one master",
            unit=UNIT,
            rounds=hot.rate,
            base=Base("twelve queues", spread.rate),
        ),
    ]
    costs = [
        Row(name="twelve queues: all masters", unit=PER_JOB, rounds=spread.cost),
        Row(name="one queue: its master", unit=PER_JOB, rounds=hot.cost),
        Row(name="twelve queues: share of the busiest master", unit="of all", rounds=spread.busiest),
        *(
            Row(name=f"twelve queues: {name}, per job of its queues", unit=PER_JOB, rounds=each)
            for name, each in nodes.items()
        ),
    ]
    ceiling = 1e6 / max(statistics.median(hot.cost), 1e-9)
    return Section(
        name="cluster",
        title=f"{TITLE}, {context.scale.drain:,} no-op jobs",
        rows=[*work, *costs],
        charts=[bars("Jobs per second, a worker of two runners", work)],
        notes=[
            "The whole run of `windlass worker --until-empty --processes 2`, with start-up. Cluster, worker and "
            "single server share one machine: three masters have no more processors here than one server has.",
            "Processor time is what the servers report (`used_cpu_user`, `used_cpu_sys`). A server runs one script "
            "at a time, so one queue can reach "
            f"{ceiling:,.0f} jobs/s at most on such a processor, whatever the number of masters and workers.",
        ],
    )
