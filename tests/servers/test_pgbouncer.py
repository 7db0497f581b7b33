"""A PgBouncer in front of the shared server."""

import shutil

import pytest

from tests.support.servers import pgbouncer
from tests.support.servers.address import Address
from tests.support.servers.pgbouncer import PgBouncer


def test_it_passes_a_query_through(postgres_pgbouncer: PgBouncer, postgres_url: str) -> None:
    name = postgres_url.rpartition("/")[2]
    through = Address(postgres_pgbouncer.address.dsn(name))
    assert through.url != postgres_url
    assert through.execute("SELECT current_database()") == [(name,)]


def test_it_shares_server_connections_between_transactions(postgres_pgbouncer: PgBouncer, postgres_url: str) -> None:
    through = Address(postgres_pgbouncer.address.dsn(postgres_url.rpartition("/")[2]))
    with through.connect() as one, through.connect() as other:
        pids = [connection.execute("SELECT pg_backend_pid()").fetchone() for connection in (one, other, one)]
    assert len(set(pids)) == 1


def test_where_it_is_missing_a_test_is_skipped_and_in_ci_fails_if_it_could_be_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.skip.Exception, match="pgbouncer is not installed"):
        pgbouncer.program()
    monkeypatch.setattr(shutil, "which", lambda name, path=None: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(pytest.fail.Exception, match="pgbouncer is not installed"):
        pgbouncer.program()
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="apt-get install pgbouncer"):
        pgbouncer.program()
