"""Fixtures of the servers: `tests/conftest.py` loads them for every folder."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.address import Address
from tests.support.servers.pgbouncer import PgBouncer, pgbouncer
from tests.support.servers.places import VARIABLE, postgres_place, shared_server
from tests.support.servers.postgres import PostgresServer, new_server


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
