"""The stores that can be tortured: how one is had, copied and looked into, by the name of a path of a test's own."""

import shutil
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg
import redis

from tests.support.limits.places import bare_limited_place
from tests.support.servers.places import copy_postgres_place, postgres_place
from tests.support.servers.redis_places import redis_place, shared_redis
from tests.support.stores import postgres_url, with_profile, yugabyte_limits_url, yugabyte_url
from tests.torture.scene import Scene
from windlass.store.redis.connection.address import parse_address

Rows = dict[str, list[Any]]


class Ground(Protocol):
    """A kind of store; a path names one store of it."""

    def is_piecemeal(self, scene: Scene) -> bool:
        """Whether what happens there may be committed in several steps."""

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

    def is_piecemeal(self, scene: Scene) -> bool:
        return scene.piecemeal and not scene.by_servers

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


_ALL_OF = {"dirty_keys": b"SELECT DISTINCT queue, key FROM windlass.dirty_keys"}
"""Marks are numbered, a number is used up by what is rolled back, and one more says no more."""


class PostgresGround:
    """Databases of the server of this run."""

    def is_piecemeal(self, scene: Scene) -> bool:
        return scene.piecemeal

    def bare(self, path: Path) -> str:
        return postgres_place(path)

    def url(self, path: Path) -> str:
        return postgres_url(path)

    def copy(self, source: Path, target: Path) -> None:
        copy_postgres_place(source, target)

    def rows(self, path: Path) -> Rows:
        return rows_of(self.url(path))


def rows_of(url: str) -> Rows:
    """Everything in the tables of a database."""
    with psycopg.connect(url) as database:
        tables = database.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'windlass'").fetchall()
        # When the schema was made, and which database this is, is different each time.
        kept = sorted(name for (name,) in tables if name not in ("schema", "identity"))
        return {name: _rows(database, name) for name in kept}


def _rows(database: "psycopg.Connection[Any]", name: str) -> list[Any]:
    cursor = database.execute(_ALL_OF.get(name, f"SELECT * FROM windlass.{name}".encode()))
    columns = [column.name for column in cursor.description or ()]
    # A random part of a key.
    kept = [place for place, column in enumerate(columns) if column != "part"]
    return sorted((tuple(row[place] for place in kept) for row in cursor), key=repr)


class YugabyteGround(PostgresGround):
    """The same with the YugabyteDB profile, whose migrations are steps."""

    def is_piecemeal(self, scene: Scene) -> bool:
        return super().is_piecemeal(scene) or scene.verb == "migrate"

    def bare(self, path: Path) -> str:
        return with_profile(postgres_place(path))

    def url(self, path: Path) -> str:
        return yugabyte_url(path)

    def rows(self, path: Path) -> Rows:
        found = rows_of(postgres_place(path))
        return {name: rows for name, rows in found.items() if name != "conflicts"}


class LimitsGround(YugabyteGround):
    """The YugabyteDB profile, through the proxy that fails."""

    def bare(self, path: Path) -> str:
        return with_profile(bare_limited_place(path))

    def url(self, path: Path) -> str:
        return yugabyte_limits_url(path)


STEPWISE = ("beat", "cancel", "change", "claim", "close", "declare", "end", "fire", "migrate", "park")
"""Verbs that go from global keys to queues, or from queue to queue, each by a script of its own."""


class RedisGround:
    """Prefixes of the Redis of this run. Every script is a commit of its own: a repeat does what is left."""

    def is_piecemeal(self, scene: Scene) -> bool:
        return scene.piecemeal or scene.tells or scene.verb in STEPWISE

    def bare(self, path: Path) -> str:
        return redis_place(path)

    def url(self, path: Path) -> str:
        return redis_place(path)

    def copy(self, source: Path, target: Path) -> None:
        old, new = (parse_address(self.url(path), "").prefix for path in (source, target))
        with redis.Redis.from_url(shared_redis()) as client:
            for key in client.scan_iter(f"{old}:*"):
                client.restore(new.encode() + key.removeprefix(old.encode()), 0, client.dump(key))

    def rows(self, path: Path) -> Rows:
        prefix = parse_address(self.url(path), "").prefix
        with redis.Redis.from_url(shared_redis()) as client:
            keys = sorted(client.scan_iter(f"{prefix}:*"))
            return {key.decode().removeprefix(prefix): _content(client, key) for key in keys}


def _content(client: redis.Redis, key: bytes) -> list[Any]:
    kind = client.type(key)
    if kind == b"hash":
        # Which store this is, is different each time. A record's version says only that it was written, and
        # the number of a plan only that there was one.
        items: list[Any] = [item for item in client.hgetall(key).items() if item[0] not in (b"store", b"stamp")]
        if key.endswith(b"}:jobs"):
            items = [(id_, record[:1] + record[5:]) for id_, record in items]
        if key.endswith(b"}:schedule_states"):
            items = [(name, record[8:]) for name, record in items]
        return sorted(items)
    if kind == b"zset":
        return sorted(client.zrange(key, 0, -1, withscores=True))
    assert kind == b"set", kind
    return sorted(client.smembers(key))


GROUNDS: dict[str, Ground] = {
    "postgres": PostgresGround(),
    "redis": RedisGround(),
    "sqlite": SqliteGround(),
    "yugabyte": YugabyteGround(),
    "yugabyte-limits": LimitsGround(),
}
