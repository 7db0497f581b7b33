"""The role with the limits of YugabyteDB: what it may not do with its own tables, and what it still can."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.limits.role import limit_database


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """The role's, on a database in which it has made a table."""
    with psycopg.connect(limit_database(postgres_url), autocommit=True) as limited:
        limited.execute("CREATE SCHEMA ours")
        limited.execute("CREATE TABLE ours.jobs (id integer PRIMARY KEY, status text)")
        limited.execute("INSERT INTO ours.jobs VALUES (1, 'pending'), (2, 'pending')")
        yield limited


@pytest.mark.parametrize(
    "call",
    [
        "SELECT pg_notify('channel', '')",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_try_advisory_xact_lock(1, 2)",
        "SELECT pg_current_xact_id()",
        "SELECT pg_current_xact_id_if_assigned()",
        "SELECT pg_snapshot_xmin(pg_current_snapshot())",
        "SELECT txid_current()",
        "SELECT ctid FROM ours.jobs",
        "SELECT xmin FROM ours.jobs",
        "UPDATE ours.jobs SET status = 'running' WHERE ctid = '(0,1)'",
        "DELETE FROM ours.jobs WHERE ctid = ANY(ARRAY(SELECT '(0,1)'::tid))",
        "UPDATE ours.jobs SET status = 'running' RETURNING ctid",
        "TRUNCATE ours.jobs",
    ],
)
def test_it_is_refused_what_yugabytedb_does_not_have(connection: psycopg.Connection[Any], call: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(call.encode())


@pytest.mark.parametrize(
    "call",
    [
        "SELECT * FROM ours.jobs",
        "SELECT count(*) FROM ours.jobs",
        "SELECT row_to_json(job) FROM ours.jobs AS job",
        "SELECT id FROM ours.jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        "SELECT id FROM ours.jobs FOR NO KEY UPDATE",
        "WITH done AS (DELETE FROM ours.jobs WHERE id = 1 RETURNING *) INSERT INTO ours.jobs SELECT id + 7 FROM done",
        "UPDATE ours.jobs SET status = 'running' WHERE id = 1 RETURNING *",
        "INSERT INTO ours.jobs VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET status = excluded.status RETURNING id",
        "ALTER TABLE ours.jobs ADD COLUMN more integer",
        "CREATE INDEX ON ours.jobs (status) WHERE id > 1",
        "ANALYZE ours.jobs",
    ],
)
def test_everything_else_is_answered(connection: psycopg.Connection[Any], call: str) -> None:
    assert connection.execute(call.encode()).statusmessage


def test_a_column_that_comes_later_is_its_own_too(connection: psycopg.Connection[Any]) -> None:
    connection.execute("ALTER TABLE ours.jobs ADD COLUMN more integer")
    connection.execute("UPDATE ours.jobs SET more = 1")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT more, ctid FROM ours.jobs")
