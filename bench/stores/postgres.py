"""The PostgreSQL store: a database for every run."""

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import asyncpg
import msgspec

from bench.peer_entry import PeerEntry
from bench.stores import postgres_bare as bare
from bench.stores.base import BareDrain, Counters, Pooler, Span
from bench.stores.loops import run_loops
from bench.stores.postgres_loops import Drained
from bench.stores.postgres_pooler import pool
from bench.targets import POSTGRES, POSTGRES_PEERS
from windlass.bench.process import BenchFailed
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.store.open import redact
from windlass.store.postgres.connection.address import parse_address
from windlass.store.samples import SampleTables

SPAN = "SELECT count(*), min(claimed_at), max(finished_at) FROM windlass.history WHERE status = 'completed'"
FINISHES = "SELECT finished_at / 10000, count(*) FROM windlass.history GROUP BY 1 ORDER BY 1"
HISTORY = """
INSERT INTO windlass.history
    (id, partition, queue, type, payload, status, sort_priority, run_at, attempt, max_attempts, failures, crashes,
     rescues, suspicions, requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at,
     worker, timeout, cancel_requested, result)
SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, windlass.partition_of('completed', now, keep),
       'default', 'noop', '{"n":1,"s":"' || $2::text || '"}', 'completed', 0, now, 1, 3, 0, 0, 0, 0, 0, 0, now, now,
       now, now, now, now + keep, 'bench', 0, false, 'null'
FROM generate_series(1, $1::bigint) n,
     (SELECT (extract(epoch FROM now()) * 1000000)::bigint AS now, 604800000000 AS keep) moment
"""
COUNT = """
INSERT INTO windlass.history_counts (queue, status, day, jobs)
SELECT 'default', 'completed', windlass.drop_day('completed', now, 604800000000), $1
FROM (SELECT (extract(epoch FROM now()) * 1000000)::bigint AS now) moment
"""
METERS = """
INSERT INTO windlass.meters
    (interval_start, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run)
SELECT interval_start - n * 10000000, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM generate_series(1, $1::bigint) n, windlass.meters
WHERE interval_start = (SELECT max(interval_start) FROM windlass.meters)
"""
COUNTERS = """
SELECT xact_commit, (pg_current_wal_lsn() - '0/0')::bigint FROM pg_stat_database WHERE datname = current_database()
"""
LOOPS = "bench.stores.postgres_loops"
SETTINGS = ("fsync", "synchronous_commit", "shared_buffers", "max_wal_size")
SECOND = 1_000_000

T = TypeVar("T")


class PostgresBench:
    """Databases on one server; the user of the address must be allowed to create and drop them."""

    targets = POSTGRES
    peer_entries: tuple[PeerEntry, ...] = POSTGRES_PEERS

    def __init__(self, template: str) -> None:
        if "{run}" not in urlsplit(template).path:
            raise ConfigError(f"--store {redact(template)}: write {{run}} as the database: each run makes its own")
        # Invalid options are reported now, not in the middle of a run.
        parse_address(self._at(template, "0"), redact(template))
        self._template = template
        self._runs = 0

    def facts(self) -> dict[str, str]:
        """Versions of server and driver, and the flush settings."""
        found = _wait(self._facts())
        return {"store": "PostgreSQL", **found, "asyncpg": version("asyncpg")}

    async def _facts(self) -> dict[str, str]:
        async with _connected(self._dsn("postgres")) as connection:
            names = {"PostgreSQL": "server_version", **{name: name for name in SETTINGS}}
            return {said: await connection.fetchval(f"SHOW {name}") for said, name in names.items()}

    def fresh(self) -> str:
        """A new database."""
        while True:
            self._runs += 1
            name = f"windlass_bench_{self._runs}"
            if _wait(self._create(name)):
                return self._at(self._template, name)

    async def _create(self, name: str) -> bool:
        """Create it, unless it exists: it may belong to another program."""
        try:
            async with _connected(self._dsn("postgres")) as connection:
                await connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
        except asyncpg.DuplicateDatabaseError:
            return False
        except (OSError, asyncpg.PostgresError) as error:
            raise ConfigError(f"--store {redact(self._template)}: no database can be made: {error}") from error
        return True

    def drop(self, address: str) -> None:
        """Drop the database, even with open connections."""
        _wait(self._drop(urlsplit(address).path.strip("/")))

    async def _drop(self, name: str) -> None:
        async with _connected(self._dsn("postgres")) as connection:
            await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            # Unwritten pages of a run must not slow down the next one.
            await connection.execute("CHECKPOINT")

    def bare_drain(self, jobs: int) -> BareDrain:
        """Batches of 200, claim on one connection, settle on another."""
        with self._bare(jobs) as dsn:
            return drain_bare(dsn, 1)

    def bare_together(self, jobs: int) -> float:
        """Two such loops in two processes."""
        with self._bare(jobs) as dsn:
            return drain_bare(dsn, 2).rate

    def bare_wake(self, jobs: int) -> list[float]:
        """NOTIFY, and a claim by the process that listens."""
        with self._bare() as dsn:
            return wake_bare(dsn, jobs)

    def bare_bulk(self, jobs: int, *, with_making: bool) -> float:
        """INSERT … SELECT FROM unnest, 1,000 rows to a commit."""
        with self._bare() as dsn:
            whole, inserting = _wait(bare.insert_in_bulk(dsn, jobs))
            return jobs / (whole if with_making else inserting)

    def bare_commits(self, jobs: int) -> float:
        """A prepared INSERT with NOTIFY and its commit for every job."""
        with self._bare() as dsn:
            return jobs / _wait(bare.insert_one_by_one(dsn, jobs))

    def span(self, address: str) -> Span:
        """From history."""
        ((jobs, first, last),) = _wait(self._rows(address, SPAN))
        if not jobs:
            raise BenchFailed("no job is in history")
        return Span(jobs, first / SECOND, last / SECOND)

    def finishes(self, address: str) -> list[tuple[float, int]]:
        """From history, by hundredths of a second."""
        return [((hundredth + 1) / 100, jobs) for hundredth, jobs in _wait(self._rows(address, FINISHES))]

    def fill_history(self, address: str, jobs: int) -> None:
        """One statement; the rows look like completed no-ops with ids older than any other."""
        _wait(self._fill(address, jobs))

    async def _fill(self, address: str, jobs: int) -> None:
        async with _connected(_dsn(address)) as connection, connection.transaction():
            await connection.execute(HISTORY, jobs, "x" * 64)
            await connection.execute(COUNT, jobs)

    def repeat_meters(self, address: str, intervals: int) -> None:
        """One statement."""
        _wait(self._repeat(address, intervals))

    async def _repeat(self, address: str, intervals: int) -> None:
        async with _connected(_dsn(address)) as connection:
            await connection.execute(METERS, intervals)

    def sample_tables(self, store: Store) -> SampleTables:
        """Its statistics."""
        return cast(SampleTables, store.stats)

    @contextlib.contextmanager
    def hold_snapshot(self, address: str) -> Iterator[None]:
        """A REPEATABLE READ transaction, past which nothing can be vacuumed."""
        with asyncio.Runner() as runner:
            holder = runner.run(_hold(_dsn(address)))
            try:
                yield
            finally:
                runner.run(holder.close())

    def pooler(self) -> AbstractContextManager[Pooler]:
        """PgBouncer, if it is installed."""
        return pool(self._template)

    def counters(self, address: str) -> Counters:
        """Of the database, and of the whole server's log: nothing else may run there."""
        ((commits, written),) = _wait(self._rows(address, COUNTERS))
        return Counters(commits, written)

    def occupied(self, address: str) -> int:
        """Tables and indexes of the database."""
        ((size,),) = _wait(self._rows(address, "SELECT pg_database_size(current_database())"))
        return int(size)

    def longest_call(self) -> None:
        """Not recorded."""

    async def _rows(self, address: str, question: str) -> list[Any]:
        async with _connected(_dsn(address)) as connection:
            return list(await connection.fetch(question))

    @contextlib.contextmanager
    def _bare(self, jobs: int = 0) -> Iterator[str]:
        address = self.fresh()
        try:
            _wait(bare.prepare(_dsn(address), jobs))
            yield _dsn(address)
        finally:
            self.drop(address)

    def _dsn(self, database: str) -> str:
        return _dsn(self._at(self._template, database))

    @staticmethod
    def _at(template: str, database: str) -> str:
        parts = urlsplit(template)
        return parts._replace(path=parts.path.replace("{run}", database)).geturl()


def drain_bare(dsn: str, loops: int) -> BareDrain:
    """The rate of several loops together on the same tables, and their processor time per job."""
    said = run_loops(LOOPS, dsn, [("drain", 0)] * loops)
    drained = [msgspec.json.decode(line, type=Drained) for line in said]
    jobs = sum(each.jobs for each in drained)
    taken = max(each.ended for each in drained) - min(each.began for each in drained)
    return BareDrain(jobs / taken, sum(each.cpu for each in drained) / jobs)


def wake_bare(dsn: str, jobs: int) -> list[float]:
    """Milliseconds from enqueue in one process to claimed in another, which listens."""
    return msgspec.json.decode(run_loops(LOOPS, dsn, [("listen", jobs), ("produce", jobs)])[0], type=list[float])


def _dsn(address: str) -> str:
    """The address for the driver, without Windlass's options."""
    return parse_address(address, redact(address)).dsn


def _wait(work: Coroutine[Any, Any, T]) -> T:
    """Run it in a thread, because some callers have a running event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(bare.on_uvloop, work).result()


@contextlib.asynccontextmanager
async def _connected(dsn: str) -> Any:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def _hold(dsn: str) -> Any:
    connection = await asyncpg.connect(dsn)
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class")
    return connection
