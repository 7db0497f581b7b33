"""A server of the test's own: it starts as the user of the tests, and can be stopped, killed and started again."""

import os
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.support.servers import binaries
from tests.support.servers.account import unprivileged
from tests.support.servers.address import Address
from tests.support.servers.postgres import Mode, PostgresServer


def test_it_is_run_by_an_account_that_may(postgres_server: PostgresServer) -> None:
    owner = Path(f"/proc/{postgres_server.pid}").stat().st_uid
    assert owner != 0
    assert owner == (unprivileged().user or os.geteuid())


def test_it_is_the_version_that_was_found_and_keeps_what_it_commits(postgres_server: PostgresServer) -> None:
    (shown,) = postgres_server.address.execute(
        "SELECT current_setting('server_version_num')::int / 10000, current_setting('fsync'),"
        " current_setting('synchronous_commit'), current_setting('max_connections')"
    )
    assert shown == (binaries.find().major, "on", "on", "300")


def test_it_can_be_reached_through_its_socket(postgres_server: PostgresServer) -> None:
    host = quote(str(postgres_server.socket), safe="")
    address = Address(f"postgresql://windlass@{host}:{postgres_server.port}/postgres")
    assert address.execute("SELECT 1") == [(1,)]


def test_what_was_committed_is_there_after_a_kill(postgres_server: PostgresServer) -> None:
    postgres_server.address.execute("CREATE TABLE kept AS SELECT 7 AS number")
    with postgres_server.address.connect() as lost:
        postgres_server.kill()
        assert not postgres_server.running
        with pytest.raises(psycopg.OperationalError):
            lost.execute("SELECT 1")
    postgres_server.start()
    assert postgres_server.address.execute("SELECT number FROM kept") == [(7,)]
    assert "was interrupted" in postgres_server.log


@pytest.mark.parametrize("mode", Mode)
def test_it_stops_and_starts_at_the_same_address(postgres_server: PostgresServer, mode: Mode) -> None:
    before = postgres_server.dsn(), postgres_server.pid
    postgres_server.stop(mode)
    with pytest.raises(psycopg.OperationalError):
        postgres_server.address.execute("SELECT 1")
    postgres_server.start()
    assert postgres_server.dsn() == before[0]
    assert postgres_server.pid != before[1]
    assert postgres_server.address.execute("SELECT 1") == [(1,)]
