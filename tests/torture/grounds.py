"""The stores that can be tortured: how one is had, copied and looked into, by the name of a path of a test's own."""

import shutil
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg
import redis

from tests.support.servers.places import copy_postgres_place, postgres_place
from tests.support.servers.redis_places import redis_place, redis_prefix, shared_redis
from tests.support.stores import postgres_url

Rows = dict[str, list[Any]]


class Ground(Protocol):
    """A kind of store; a path names one store of it."""

    stepwise: bool
    """Whether a verb may be committed in several steps."""

    def bare(self, path: Path) -> str:
        """The address of a new one, without anything of ours in it."""

    def url(self, path: Path) -> str:
        """The address of one that may have been there before."""

    def copy(self, source: Path, target: Path) -> None:
        """Everything that is in it, under another name."""

    def rows(self, path: Path) -> Rows:
        """Everything the store keeps, table by table."""


class SqliteGround:
    """Files."""

    stepwise = False

    def bare(self, path: Path) -> str:
        path.touch()
        return self.url(path)

    def url(self, path: Path) -> str:
        return f"sqlite:///{path}?durability=relaxed"

    def copy(self, source: Path, target: Path) -> None:
        shutil.copy(source, target)

    def rows(self, path: Path) -> Rows:
        database = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
        try:
            names = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            kept = [name for name in names if name.startswith("windlass_") and name != "windlass_schema"]
            found = {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in kept}
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return found
        finally:
            database.close()


_ALL_OF = {"marks": b"SELECT DISTINCT queue, key FROM windlass.marks"}
"""Marks are numbered, a number is used up by what is rolled back, and one more says no more."""


class PostgresGround:
    """Databases of the server of this run."""

    stepwise = True

    def bare(self, path: Path) -> str:
        return postgres_place(path)

    def url(self, path: Path) -> str:
        return postgres_url(path)

    def copy(self, source: Path, target: Path) -> None:
        copy_postgres_place(source, target)

    def rows(self, path: Path) -> Rows:
        with psycopg.connect(self.url(path)) as database:
            tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'windlass'").fetchall()
            # When the schema was made, and which database this is, is different each time.
            kept = sorted(name for (name,) in tables if name not in ("schema", "identity"))
            return {
                name: sorted(database.execute(_ALL_OF.get(name, f"SELECT * FROM windlass.{name}".encode())), key=repr)
                for name in kept
            }


class RedisGround:
    """Prefixes on the Redis of this run."""

    stepwise = True

    def bare(self, path: Path) -> str:
        return redis_place(path)

    def url(self, path: Path) -> str:
        return redis_place(path)

    def copy(self, source: Path, target: Path) -> None:
        with self._server() as server:
            old, new = redis_prefix(source), redis_prefix(target)
            for key in server.scan_iter(f"{old}:*", count=1000):
                server.restore(key.replace(old.encode(), new.encode(), 1), 0, server.dump(key), replace=True)

    def rows(self, path: Path) -> Rows:
        prefix = redis_prefix(path)
        with self._server() as server:
            found = {key.decode(): _contents(server, key) for key in server.scan_iter(f"{prefix}:*", count=1000)}
        return {name.removeprefix(prefix): rows for name, rows in sorted(found.items())}

    def _server(self) -> redis.Redis:
        return redis.Redis.from_url(shared_redis())


def _contents(server: redis.Redis, key: bytes) -> list[Any]:
    match server.type(key):
        case b"hash":
            return sorted(server.hgetall(key).items())
        case b"zset":
            return list(server.zrange(key, 0, -1, withscores=True))
        case b"set":
            return sorted(server.smembers(key))
        case kind:
            raise AssertionError(f"{key!r} is a {kind!r}: no such key is in the map")


GROUNDS: dict[str, Ground] = {"postgres": PostgresGround(), "redis": RedisGround(), "sqlite": SqliteGround()}
