"""The SQLite store: a file for every run."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import apsw

from bench.peer_entry import PeerEntry
from bench.stores.base import BareDrain, Pooler, Span
from bench.stores.sqlite_bare import Bare
from bench.targets import SQLITE, SQLITE_PEERS
from windlass.errors import ConfigError
from windlass.store.contract import Store
from windlass.store.samples import SampleTables
from windlass.store.sqlite.address import parse_address
from windlass.store.sqlite.connection.files import file_system_of

SPAN = "SELECT count(*), min(claimed_at), max(finished_at) FROM windlass_history WHERE status = 'completed'"
FINISHES = "SELECT finished_at / 10000, count(*) FROM windlass_history GROUP BY 1 ORDER BY 1"
HISTORY = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :jobs),
     moment (now) AS (SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER))
INSERT INTO windlass_history
    (id, queue, type, payload, status, sort_priority, run_at, attempt, max_attempts, failures, crashes,
    rescues, suspicions,
     requeues, snoozes, created_at, updated_at, claimed_at, started_at, finished_at, drop_at, worker,
     cancel_requested, result)
SELECT printf('00000000-0000-7000-8000-%012x', n), 'default', 'noop', '{"n":1,"s":"' || :filler || '"}', 'completed',
       0, now, 1, 3, 0, 0, 0, 0, 0, 0, now, now, now, now, now, now + 604800000000, 'bench', 0, 'null'
FROM number, moment
"""
COUNT = """INSERT INTO windlass_history_counts VALUES ('default', 'completed', :jobs)
ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs"""
METERS = """
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < :intervals)
INSERT INTO windlass_meters
SELECT interval_start - n * 10000000, queue, type, completed, failed, dead, cancelled, snoozed, crashed, wait, run
FROM number, windlass_meters WHERE interval_start = (SELECT max(interval_start) FROM windlass_meters)
"""
SECOND = 1_000_000


class SqliteBench:
    """Files in one folder; the denominator always flushes every commit, whatever the address says."""

    targets = SQLITE
    peer_entries: tuple[PeerEntry, ...] = SQLITE_PEERS

    def __init__(self, template: str) -> None:
        if "{run}" not in template:
            raise ConfigError(f"--store {template}: write {{run}} where each run's own number goes")
        self._template = template
        self._runs = 0
        self._folder = parse_address(template.replace("{run}", "0")).path.parent
        if not self._folder.is_dir():
            raise ConfigError(f"--store {template}: there is no folder {self._folder}")

    def facts(self) -> dict[str, str]:
        """The versions of the library, and the file system."""
        kind = file_system_of(self._folder, Path("/proc/self/mountinfo")) or "unknown"
        durability = parse_address(self._template.replace("{run}", "0")).durability
        return {
            "store": "SQLite",
            "SQLite": apsw.sqlite_lib_version(),
            "apsw": apsw.apsw_version(),
            "durability": durability,
            "file system": f"{kind} (in memory: flushing costs nothing there)" if kind == "tmpfs" else kind,
        }

    def fresh(self) -> str:
        """The address of a file that does not exist yet."""
        while True:
            self._runs += 1
            address = parse_address(self._template.replace("{run}", str(self._runs)))
            if not address.path.exists():
                # Absolute, because workers run in another folder.
                return address.url

    def drop(self, address: str) -> None:
        """The file and those beside it."""
        path = parse_address(address).path
        for each in path.parent.glob(f"{path.name}*"):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink()

    def bare_drain(self, jobs: int) -> BareDrain:
        """Batches of 100, settle and claim in one transaction."""
        with self._bare() as bare:
            bare.insert(jobs)
            return bare.drain()

    def bare_together(self, jobs: int) -> None:
        """None: the file has one writer at a time."""

    def bare_wake(self, jobs: int) -> None:
        """A file cannot notify."""

    def bare_bulk(self, jobs: int, *, with_making: bool) -> float:
        """executemany, 1,000 rows per transaction."""
        with self._bare() as bare:
            whole, inserting = bare.insert(jobs)
            return jobs / (whole if with_making else inserting)

    def bare_commits(self, jobs: int) -> float:
        """BEGIN IMMEDIATE, INSERT, COMMIT for every job."""
        with self._bare() as bare:
            return jobs / bare.insert_one_by_one(jobs)

    def span(self, address: str) -> Span:
        """From history."""
        with self._opened(address) as connection:
            found: tuple[Any, ...] = connection.execute(SPAN).fetchall()[0]
        jobs, first, last = found
        return Span(jobs, first / SECOND, last / SECOND)

    def finishes(self, address: str) -> list[tuple[float, int]]:
        """From history, by hundredths of a second."""
        with self._opened(address) as connection:
            return [((hundredth + 1) / 100, jobs) for hundredth, jobs in connection.execute(FINISHES)]

    def fill_history(self, address: str, jobs: int) -> None:
        """One statement; the rows look like completed no-ops with ids older than any other."""
        with self._opened(address) as connection, connection:
            connection.execute(HISTORY, {"jobs": jobs, "filler": "x" * 64})
            connection.execute(COUNT, {"jobs": jobs})

    def repeat_meters(self, address: str, intervals: int) -> None:
        """One statement."""
        with self._opened(address) as connection, connection:
            connection.execute(METERS, {"intervals": intervals})

    def sample_tables(self, store: Store) -> SampleTables:
        """Its statistics."""
        return cast(SampleTables, store.stats)

    @contextlib.contextmanager
    def hold_snapshot(self, address: str) -> Iterator[None]:
        """A read transaction, beyond which the write-ahead log is not shortened."""
        with self._opened(address) as connection:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM windlass_queues").fetchall()
            yield
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def pooler(self) -> Iterator[Pooler]:
        """There is none."""
        yield Pooler(skip_reason="there is no server")

    def counters(self, address: str) -> None:
        """None: there is no server."""

    def occupied(self, address: str) -> int:
        """The size of the database file after a checkpoint."""
        with self._opened(address) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return parse_address(address).path.stat().st_size

    def longest_call(self) -> None:
        """Not recorded."""

    @contextlib.contextmanager
    def _bare(self) -> Iterator[Bare]:
        address = self.fresh()
        bare = Bare(parse_address(address).path)
        try:
            yield bare
        finally:
            bare.close()
            self.drop(address)

    @contextlib.contextmanager
    def _opened(self, address: str) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(parse_address(address).path))
        try:
            yield connection
        finally:
            connection.close()
