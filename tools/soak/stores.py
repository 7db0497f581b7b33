"""The three stores of a soak: where they are, what is in them, and faults of their servers."""

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol

import psycopg
import redis
from tests.support.processes import descendants
from tests.support.servers.postgres import new_server
from tests.support.servers.redis import new_redis
from tools.soak.verdict import KEPT_LONGER

MEGABYTE = 1e6
KEPT = "kept longer"
OTHER = "other"

Values = dict[str, float]
"""Names of series, without the store's, and their values now."""


class Soaked(Protocol):
    """A store under soak. What it cannot tell because its server is away it leaves out of a sample."""

    name: str
    url: str
    has_server: bool

    def sample(self) -> Values: ...

    def cut(self) -> None:
        """Close every connection from the server's side."""

    def restart(self) -> None:
        """Stop the server in order, and start it again."""

    def stop(self) -> None: ...

    def server_pids(self) -> list[int]: ...


class Sqlite:
    """A file: it has no server that could restart or cut connections."""

    name = "sqlite"
    has_server = False
    _SIZES = """
        SELECT tbl_name, sum(pgsize) FROM dbstat('main', 1) AS used
        JOIN sqlite_schema AS made ON made.name = used.name
        GROUP BY tbl_name
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "jobs.db"
        self.url = f"sqlite:///{self._file}"

    def sample(self) -> Values:
        try:
            return self._sample()
        except sqlite3.Error:
            return {}

    def _sample(self) -> Values:
        with contextlib.closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            rows = {table: db.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0] for table in tables}
            sizes = db.execute(self._SIZES).fetchall()
        found: Values = defaultdict(float, {f"rows/{_plain(table)}": number for table, number in rows.items()})
        for table, size in sizes:
            found[f"size_mb/{KEPT if _plain(table) in KEPT_LONGER else OTHER}"] += size / MEGABYTE
        return {**found, "size_mb/log": self._size("-wal")}

    def _size(self, suffix: str) -> float:
        file = Path(f"{self._file}{suffix}")
        return file.stat().st_size / MEGABYTE if file.exists() else 0.0

    def cut(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        """No-op."""

    def server_pids(self) -> list[int]:
        return []


class Postgres:
    """A PostgreSQL server of our own."""

    name = "postgres"
    has_server = True
    _SIZES = """
        SELECT relname, pg_total_relation_size(oid) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'windlass'::regnamespace
    """
    _CONNECTIONS = """
        SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    """
    _CUT = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
    """

    def __init__(self) -> None:
        self._server = new_server()
        self._server.start()
        self.url = self._server.address.url

    def sample(self) -> Values:
        try:
            with self._server.address.connect() as db:
                return self._sample(db)
        except psycopg.Error:
            return {}

    def _sample(self, db: psycopg.Connection[Any]) -> Values:
        found: Values = defaultdict(float)
        for table, size in db.execute(self._SIZES).fetchall():
            name = _group(table)
            found[f"size_mb/{KEPT if name in KEPT_LONGER else OTHER}"] += size / MEGABYTE
            (number,) = db.execute(f'SELECT count(*) FROM windlass."{table}"'.encode()).fetchone() or (0,)
            found[f"rows/{name}"] += number
        (connections,) = db.execute(self._CONNECTIONS.encode()).fetchone() or (0,)
        return {**found, "connections/server": connections}

    def cut(self) -> None:
        self._server.address.execute(self._CUT)

    def restart(self) -> None:
        self._server.restart()

    def stop(self) -> None:
        self._server.remove()

    def server_pids(self) -> list[int]:
        return [self._server.pid, *descendants(self._server.pid)] if self._server.running else []


class Redis:
    """A Redis server of our own, with an append-only file flushed each second."""

    name = "redis"
    has_server = True
    _LENGTHS: ClassVar = {"hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "list": "LLEN", "string": "STRLEN"}

    def __init__(self) -> None:
        self._server = new_redis()
        self._seen: set[str] = set()
        self._server.start()
        self.url = self._server.url

    def sample(self) -> Values:
        try:
            with self._client() as client:
                return self._sample(client)
        except redis.RedisError:
            return {}

    def _sample(self, client: redis.Redis) -> Values:
        # An empty key does not exist: what was seen once is 0 from then on.
        found: Values = defaultdict(float, dict.fromkeys(self._seen, 0.0))
        for key in client.scan_iter(count=1000):
            name, type_ = _kind(key.decode()), client.execute_command("TYPE", key).decode()
            if type_ == "none":  # it is gone since it was listed
                continue
            length = client.execute_command(self._LENGTHS[type_], key)
            size = client.execute_command("MEMORY", "USAGE", key, "SAMPLES", 100) or 0
            found[f"rows/{name}"] += length
            found[f"size_mb/{KEPT if name in KEPT_LONGER else OTHER}"] += size / MEGABYTE
            found["keys/all"] += 1
        self._seen |= found.keys()
        found["size_mb/used memory"] = client.info("memory")["used_memory"] / MEGABYTE
        # Without our own connection.
        return {**found, "connections/server": client.info("clients")["connected_clients"] - 1}

    def cut(self) -> None:
        with self._client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    def restart(self) -> None:
        self._server.stop()
        self._server.start()

    def stop(self) -> None:
        self._server.remove()

    def server_pids(self) -> list[int]:
        return [self._server.pid] if self._server.running else []

    @contextlib.contextmanager
    def _client(self) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(self.url, socket_timeout=10) as client:
            yield client


def _plain(table: str) -> str:
    return table.removeprefix("windlass_")


def _group(table: str) -> str:
    """Partitions of one table count together."""
    for parent in ("history_day", "tombstones"):
        if table.startswith(parent):
            return parent
    return table


def _kind(key: str) -> str:
    """`windlass:{mail}:jobs` is `jobs`; `windlass:{*}:leases`, of no queue, is `*.leases`."""
    _, owner, name = key.split(":", 2)
    return f"*.{name}" if owner == "{*}" else name
