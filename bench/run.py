"""One run of the bench: its measurements, its store, its progress."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from bench.context import FULL, QUICK, VERY_FULL, BenchContext
from bench.measures import (
    buckets,
    capacity,
    chains,
    cluster,
    delays,
    drain,
    enqueue,
    events,
    flow,
    graphs,
    groups,
    growth,
    held,
    history,
    load,
    many_buckets,
    memory,
    pages,
    pooler,
    profile,
    requests,
    rest,
    rest_workers,
    round_trips,
    schedules,
)
from bench.peer import find_peers
from bench.report.figures import Section
from bench.report.machine import describe_machine
from bench.report.results import SectionResult
from bench.stores.base import StoreBench
from bench.stores.sqlite import SqliteBench
from windlass.errors import ConfigError
from windlass.store.open import redact
from windlass.version import __version__

OWN_SQLITE, OWN_POSTGRES, OWN_REDIS = "sqlite", "postgres", "redis"
Progress = Callable[[str], None]


class Measurement(StrEnum):
    """The measurements."""

    DRAIN = "drain"
    ENQUEUE = "enqueue"
    LATENCY = "latency"
    FLOW = "flow"
    BUCKETS = "buckets"
    CHAINS = "chains"
    GRAPHS = "graphs"
    CLUSTER = "cluster"
    DELAYS = "delays"
    EVENTS = "events"
    GROUPS = "groups"
    GROWTH = "growth"
    HELD = "held"
    HISTORY = "history"
    MANY_BUCKETS = "many-buckets"
    MEMORY = "memory"
    PAGES = "pages"
    POOLER = "pooler"
    PROFILE = "profile"
    REQUESTS = "requests"
    REST = "rest"
    REST_WORKERS = "rest-workers"
    ROUND_TRIPS = "round-trips"
    SCHEDULES = "schedules"
    CAPACITY = "capacity"


MEASURE: dict[Measurement, Callable[[BenchContext], Section]] = {
    Measurement.DRAIN: drain.measure,
    Measurement.ENQUEUE: enqueue.measure,
    Measurement.LATENCY: load.measure,
    Measurement.FLOW: flow.measure,
    Measurement.BUCKETS: buckets.measure,
    Measurement.CHAINS: chains.measure,
    Measurement.GRAPHS: graphs.measure,
    Measurement.CLUSTER: cluster.measure,
    Measurement.DELAYS: delays.measure,
    Measurement.EVENTS: events.measure,
    Measurement.GROUPS: groups.measure,
    Measurement.GROWTH: growth.measure,
    Measurement.HELD: held.measure,
    Measurement.HISTORY: history.measure,
    Measurement.MANY_BUCKETS: many_buckets.measure,
    Measurement.MEMORY: memory.measure,
    Measurement.PAGES: pages.measure,
    Measurement.POOLER: pooler.measure,
    Measurement.PROFILE: profile.measure,
    Measurement.REQUESTS: requests.measure,
    Measurement.REST: rest.measure,
    Measurement.REST_WORKERS: rest_workers.measure,
    Measurement.ROUND_TRIPS: round_trips.measure,
    Measurement.SCHEDULES: schedules.measure,
    Measurement.CAPACITY: capacity.measure,
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run."""

    wanted: Sequence[Measurement]
    store: str | None = None
    """A template of addresses with {run} in it; `postgres` or `redis`: a server of our own; None: SQLite files."""
    quick: bool = False
    rounds: int | None = None
    out: Path = Path("bench/out")
    peers: Path | None = None
    """A folder with an environment for each peer."""
    full: bool = False
    """Also with ten million finished jobs."""


def run(plan: Plan, progress: Progress) -> Iterator[SectionResult]:
    """Yield each section as soon as it is complete."""
    if not Path("/proc/self/stat").exists():
        raise ConfigError("the bench reads /proc, which only Linux has")
    with _context(plan, progress) as context:
        # Before anything runs: later the load would be the bench's.
        machine = describe_machine(context.store_bench.facts())
        for wanted in plan.wanted:
            section = MEASURE[wanted](context)
            yield SectionResult(section, machine, __version__, context.scale.rounds, plan.quick)


@contextmanager
def _context(plan: Plan, progress: Progress) -> Iterator[BenchContext]:
    scale = QUICK if plan.quick else FULL
    if plan.rounds is not None:
        scale = msgspec.structs.replace(scale, rounds=plan.rounds)
    if plan.full:
        scale = msgspec.structs.replace(scale, histories=VERY_FULL)
    plan.out.mkdir(parents=True, exist_ok=True)
    # The folder of the results is on a disk; /tmp may be memory.
    scratch = tempfile.TemporaryDirectory(prefix="run-", dir=plan.out.resolve(), ignore_cleanup_errors=True)
    with scratch as folder, _template(plan, Path(folder)) as template:
        store_bench = find_store_bench(template)
        peers = find_peers(store_bench.peer_entries, plan.peers)
        yield BenchContext(store_bench, scale, peers, Path(folder), progress)


@contextmanager
def _template(plan: Plan, folder: Path) -> Iterator[str]:
    """The template of store addresses: as given, of a server that the bench starts, or of files in its folder."""
    if plan.store == OWN_POSTGRES:
        from bench.stores.postgres_server import serve

        with serve(plan.out.resolve()) as template:
            yield template
    elif plan.store == OWN_REDIS:
        from bench.stores.redis_server import serve as serve_redis

        with serve_redis(plan.out.resolve()) as template:
            yield template
    else:
        given = plan.store if plan.store != OWN_SQLITE else None
        yield given or f"sqlite:///{folder}/{{run}}.db"


def find_store_bench(template: str) -> StoreBench:
    """The bench of the store at an address; only this function knows every store."""
    if template.startswith("sqlite:"):
        return SqliteBench(template)
    if template.startswith(("postgresql:", "postgres:")):
        # Imported here, since its driver is an extra.
        from bench.stores.postgres import PostgresBench

        return PostgresBench(template)
    if template.startswith(("redis:", "rediss:")):
        from bench.stores.redis import RedisBench

        return RedisBench(template)
    raise ConfigError(f"--store {redact(template)}: the bench knows sqlite:, postgresql: and redis: only")
