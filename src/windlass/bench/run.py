"""One run of the bench: which measurements, on which store, told to whom."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from windlass.bench import (
    chains,
    delays,
    drain,
    enqueue,
    flow,
    growth,
    held,
    history,
    latency,
    memory,
    pooler,
    profile,
    space,
)
from windlass.bench.contest import find_peers
from windlass.bench.figures import Section
from windlass.bench.ground import FULL, QUICK, VERY_FULL, Ground
from windlass.bench.machine import look
from windlass.bench.measurement import Measurement
from windlass.bench.report import Taken
from windlass.bench.sqlite import SqliteYardstick
from windlass.bench.yardstick import Yardstick
from windlass.errors import ConfigError
from windlass.store.open import redact
from windlass.version import __version__

OWN_POSTGRES, OWN_REDIS = "postgres", "redis"
Say = Callable[[str], None]

MEASURE: dict[Measurement, Callable[[Ground], Section]] = {
    Measurement.DRAIN: drain.measure,
    Measurement.ENQUEUE: enqueue.measure,
    Measurement.LATENCY: latency.measure,
    Measurement.FLOW: flow.measure,
    Measurement.CHAINS: chains.measure,
    Measurement.DELAYS: delays.measure,
    Measurement.GROWTH: growth.measure,
    Measurement.HELD: held.measure,
    Measurement.HISTORY: history.measure,
    Measurement.MEMORY: memory.measure,
    Measurement.POOLER: pooler.measure,
    Measurement.PROFILE: profile.measure,
    Measurement.SPACE: space.measure,
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run."""

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


def run(plan: Plan, say: Say) -> Iterator[Taken]:
    """The sections, each as soon as it is complete."""
    if not Path("/proc/self/stat").exists():
        raise ConfigError("windlass bench reads /proc, which only Linux has")
    with _ground(plan, say) as ground:
        # Once, before anything runs: later the load would be our own.
        machine = look(ground.yardstick.facts())
        for wanted in plan.wanted:
            section = MEASURE[wanted](ground)
            yield Taken(section, machine, __version__, ground.scale.rounds, plan.quick)


@contextmanager
def _ground(plan: Plan, say: Say) -> Iterator[Ground]:
    scale = QUICK if plan.quick else FULL
    if plan.rounds is not None:
        scale = msgspec.structs.replace(scale, rounds=plan.rounds)
    if plan.full:
        scale = msgspec.structs.replace(scale, histories=VERY_FULL)
    plan.out.mkdir(parents=True, exist_ok=True)
    # Where the results go, since that is a disk like the one a user has; /tmp may be memory.
    scratch = tempfile.TemporaryDirectory(prefix="run-", dir=plan.out.resolve(), ignore_cleanup_errors=True)
    with scratch as folder, _template(plan, Path(folder)) as template:
        yardstick = find_yardstick(template)
        yield Ground(yardstick, scale, find_peers(yardstick.entries, plan.peers), Path(folder), say)


@contextmanager
def _template(plan: Plan, folder: Path) -> Iterator[str]:
    """The addresses of stores: as given, of a server of our own, or of files in our folder."""
    if plan.store == OWN_POSTGRES:
        from windlass.bench.postgres_server import serve

        with serve(plan.out.resolve()) as template:
            yield template
    elif plan.store == OWN_REDIS:
        from windlass.bench.redis_server import serve as serve_redis

        with serve_redis(plan.out.resolve()) as template:
            yield template
    else:
        yield plan.store or f"sqlite:///{folder}/{{run}}.db"


def find_yardstick(template: str) -> Yardstick:
    """From an address to a yardstick: the only place that knows which there are."""
    if template.startswith("sqlite:"):
        return SqliteYardstick(template)
    if template.startswith(("postgresql:", "postgres:")):
        # Imported here, since its driver is an extra.
        from windlass.bench.postgres import PostgresYardstick

        return PostgresYardstick(template)
    if template.startswith(("redis:", "rediss:")):
        from windlass.bench.redis import RedisYardstick

        return RedisYardstick(template)
    raise ConfigError(
        f"--store {redact(template)}: the bench has yardsticks for sqlite:, postgresql: and redis: only"
    )
