"""The stores that every conformance and model test runs on: a new one adds one entry to STORES."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from tests.support.limits.faults import EVERY_TENTH_FAILS, Limits
from tests.support.limits.places import limited_place, limited_place_without_faults
from tests.support.servers.named_yugabyte import has_hints, is_named, named_yugabyte_place
from tests.support.servers.places import behind_pooler, postgres_place
from tests.support.servers.redis_places import redis_cluster_place, redis_place
from windlass.store.clock import Clock
from windlass.store.contract import Store
from windlass.store.open import open_memory, open_store


class Kind(NamedTuple):
    """A kind of store, and what it can do: tests ask for that, not for names."""

    open: Callable[[Path, Clock], Store]
    """Open the store that lives in a test's own folder."""
    lasting: bool = True
    """Whether the jobs are there after closing and opening again."""
    notifies: bool = True
    """Whether other processes are told at once; else they poll."""


def sqlite_file(folder: Path, clock: Clock) -> Store:
    """A file of its own. Relaxed, because no test here cuts the power."""
    return open_store(f"sqlite:///{folder}/windlass.db?durability=relaxed", clock=clock)


def sqlite_file_by_stdlib(folder: Path, clock: Clock) -> Store:
    """The same, through the library that Python brings."""
    return open_store(f"sqlite:///{folder}/windlass.db?durability=relaxed&driver=sqlite3", clock=clock)


def sqlite_memory(folder: Path, clock: Clock) -> Store:
    """In the memory of the test's own process: what `App.testing()` has."""
    return open_memory(clock=clock)


def postgres(folder: Path, clock: Clock) -> Store:
    """A database of its own on the server of the test run."""
    return open_store(postgres_url(folder), clock=clock)


def postgres_pgbouncer(folder: Path, clock: Clock) -> Store:
    """The same, through PgBouncer in transaction mode."""
    return open_store(behind_pooler(postgres_url(folder)), clock=clock)


def postgres_url(folder: Path) -> str:
    """Its address; our tables are there."""
    return postgres_place(folder, _migrated)


def yugabyte(folder: Path, clock: Clock) -> Store:
    """The YugabyteDB profile of the PostgreSQL store, on the PostgreSQL of the test run."""
    return open_store(yugabyte_url(folder), clock=clock)


def yugabyte_url(folder: Path) -> str:
    """Its address; its tables are there, with four buckets."""
    return with_profile(postgres_place(folder, _migrated_profile))


def yugabyte_limits(folder: Path, clock: Clock) -> Store:
    """The profile where YugabyteDB's limits are enforced, round trips take long, and one statement of ten fails."""
    return open_store(yugabyte_limits_url(folder), clock=clock)


def yugabyte_limits_url(folder: Path, limits: Limits = EVERY_TENTH_FAILS) -> str:
    """Its address; its tables are there."""
    return with_profile(limited_place(folder, _migrated_profile, limits))


def with_profile(url: str) -> str:
    """The address with the profile."""
    return f"{url}{'&' if '?' in url else '?'}profile=yugabyte&buckets=4"


def _migrated_profile(url: str) -> None:
    _migrated(with_profile(url))


def redis(folder: Path, clock: Clock) -> Store:
    """A prefix of its own on the Redis of the test run."""
    return open_store(redis_place(folder), clock=clock)


def redis_cluster(folder: Path, clock: Clock) -> Store:
    """The same on the cluster of the test run, whose queues lie on several servers."""
    return open_store(redis_cluster_place(folder), clock=clock)


def _migrated(url: str) -> None:
    """What every test's database is a copy of."""

    async def migrate() -> None:
        store = open_store(url)
        await store.migrate()
        await store.close()

    with ThreadPoolExecutor() as pool:  # a test may have a loop running here
        pool.submit(asyncio.run, migrate()).result()


STORES: dict[str, Kind] = {
    "postgres": Kind(postgres),
    "postgres-pgbouncer": Kind(postgres_pgbouncer, notifies=False),
    "redis": Kind(redis),
    "redis-cluster": Kind(redis_cluster),
    "sqlite": Kind(sqlite_file),
    "sqlite-stdlib": Kind(sqlite_file_by_stdlib),
    "sqlite-memory": Kind(sqlite_memory, lasting=False),
    "yugabyte": Kind(yugabyte, notifies=False),
    "yugabyte-limits": Kind(yugabyte_limits, notifies=False),
}

if is_named():
    STORES["yugabyte-named"] = Kind(
        lambda folder, clock: open_store(named_yugabyte_place(folder), clock=clock), notifies=has_hints()
    )

LASTING = sorted(name for name, kind in STORES.items() if kind.lasting)

HOSTS: dict[str, Callable[[Path], Any]] = {
    "postgres": lambda folder: psycopg.connect(postgres_url(folder)),
    # A caller tries again by itself: its own statements do not fail here.
    "yugabyte-limits": lambda folder: psycopg.connect(limited_place_without_faults(folder, _migrated_profile)),
    "sqlite-stdlib": lambda folder: sqlite3.connect(folder / "windlass.db"),
}
"""Of stores that can take part in a caller's transaction: name → a caller's connection, with commit and rollback."""
