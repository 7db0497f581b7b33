"""Fixtures of the servers: `tests/conftest.py` loads them for every folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.fixtures import FixtureDef

from tests.support.servers.address import Address
from tests.support.servers.named_yugabyte import drop_named_yugabyte_places
from tests.support.servers.pgbouncer import PgBouncer, pgbouncer
from tests.support.servers.places import VARIABLE, postgres_place, shared_server
from tests.support.servers.postgres import PostgresServer, new_server
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_cluster import RedisCluster, new_cluster
from tests.support.servers.redis_places import drop_redis_places, redis_place
from tests.support.servers.redis_sentinel import RedisSentinels, new_sentinels


def pytest_fixture_post_finalizer(fixturedef: FixtureDef[object]) -> None:
    """With a test's folder goes what it kept in Redis: that is memory; and a schema of a named cluster is free."""
    if fixturedef.argname == "tmp_path" and fixturedef.cached_result is not None:
        folder = fixturedef.cached_result[0]
        if isinstance(folder, Path):
            drop_redis_places(folder)
            drop_named_yugabyte_places(folder)


@pytest.fixture(scope="session")
def postgres() -> Address:
    """The server that the tests of this run share: do not stop it."""
    return shared_server()


@pytest.fixture
def postgres_url(tmp_path: Path) -> str:
    """The address of an empty database of the test's own."""
    return postgres_place(tmp_path)


@pytest.fixture
def postgres_server() -> Iterator[PostgresServer]:
    """A running server of the test's own, which it may stop, kill and start again."""
    if os.environ.get(VARIABLE):
        pytest.skip(f"needs a server that it may kill, and {VARIABLE} names one that it may not")
    server = new_server()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def postgres_pgbouncer(postgres: Address) -> Iterator[PgBouncer]:
    """A PgBouncer of the test's own, in transaction mode, in front of the shared server."""
    with pgbouncer(postgres) as bouncer:
        yield bouncer


@pytest.fixture
def redis_url(tmp_path: Path) -> str:
    """The address of a prefix of the test's own on the Redis that the tests of this run share."""
    return redis_place(tmp_path)


@pytest.fixture
def redis_server() -> Iterator[RedisServer]:
    """A running Redis of the test's own, which it may configure, stop, kill and start again."""
    server = new_redis()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def redis_cluster() -> Iterator[RedisCluster]:
    """Six nodes of the test's own."""
    cluster = new_cluster()
    cluster.start()
    yield cluster
    cluster.remove()


@pytest.fixture
def redis_sentinels() -> Iterator[RedisSentinels]:
    """A master and its replica, watched by three Sentinels."""
    sentinels = new_sentinels()
    sentinels.start()
    yield sentinels
    sentinels.remove()
