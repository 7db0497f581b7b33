"""Either library: the same answers and the same errors."""

import logging
import sqlite3
from pathlib import Path

import pytest

from tests.sqlite.conftest import Connect, Open
from tests.support.seed import enqueue_one, look
from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.sqlite.address import Driver, connection_class
from windlass.store.sqlite.connection import stdlib_driver
from windlass.store.sqlite.connection.base import Connection, DriverError, ErrorKind, error_kind, to_store_error
from windlass.store.sqlite.db import UNREADABLE_PREFIX


@pytest.fixture
def connection(connects: Connect) -> Connection:
    """A database with one table."""
    made = connects()
    made.run("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
    made.run_many("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "y"), (3, None)])
    return made


def test_rows_are_tuples_and_changes_are_counted(connection: Connection) -> None:
    assert connection.rows("SELECT a, b FROM t WHERE a < :most", {"most": 3}) == [(1, "x"), (2, "y")]
    assert connection.run("WITH few (i) AS (VALUES (1), (2)) UPDATE t SET b = 'z' WHERE a IN few") == 2
    assert connection.run("DELETE FROM t WHERE a = 7") == 0
    connection.close()


def test_nothing_begins_by_itself(connection: Connection, connects: Connect) -> None:
    connection.run("INSERT INTO t VALUES (4, 'w')")
    assert not connection.in_transaction
    other = connects()
    assert other.rows("SELECT count(*) FROM t") == [(4,)]
    connection.close()
    other.close()


def test_a_commit_of_another_connection_is_seen(connection: Connection, connects: Connect) -> None:
    other = connects()
    before = other.data_version()
    assert other.data_version() == before
    connection.run("DELETE FROM t")
    assert other.data_version() != before
    connection.close()
    other.close()


def test_a_lock_that_another_holds_is_not_waited_for_when_trying(connection: Connection, connects: Connect) -> None:
    other = connects()
    assert other.try_begin()
    assert not connection.try_begin()
    other.run("ROLLBACK")
    assert connection.try_begin()
    connection.run("COMMIT")
    connection.close()
    other.close()


def test_a_statement_that_takes_too_long_is_cancelled(connection: Connection) -> None:
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(DriverError) as broken:
        connection.with_time_limit(0.01, lambda: connection.rows(endless))
    assert broken.value.kind is ErrorKind.INTERRUPTED
    assert connection.rows("SELECT 1") == [(1,)]
    connection.close()


def test_errors_are_of_the_same_kinds(connection: Connection) -> None:
    for wrong in ("SELECT nonsense", "INSERT INTO t VALUES (1, 'again')"):
        with pytest.raises(DriverError) as refused:
            connection.rows(wrong)
        assert refused.value.kind is ErrorKind.OTHER
    connection.close()
    with pytest.raises(DriverError):
        connection.rows("SELECT 1")


def test_a_file_that_is_no_database_cannot_be_opened(path: Path, driver: Driver) -> None:
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreUnavailable, match="is not an SQLite database") as refused:
        connection_class(driver)(path, synchronous="FULL", writes=True)
    assert refused.value.lasting


def test_a_reader_makes_no_file(path: Path, driver: Driver) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        connection_class(driver)(path, synchronous="FULL", writes=False)
    assert not path.exists()


@pytest.mark.parametrize("name", ["my jobs?.db", "100%.db", "a#b.db", "ü.db"])
def test_a_file_may_have_any_name(tmp_path: Path, driver: Driver, name: str) -> None:
    connection = connection_class(driver)(tmp_path / name, synchronous="FULL", writes=True)
    connection.run("CREATE TABLE t (a)")
    connection.close()
    looking = connection_class(driver).read_only(tmp_path / name, immutable=True)
    assert looking.rows("SELECT count(*) FROM t") == [(0,)]
    looking.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]


async def test_text_that_is_not_utf8_is_replaced(opens: Open, connects: Connect) -> None:
    store = opens()
    id_ = await enqueue_one(store)
    other = connects()
    other.run("UPDATE windlass_jobs SET reason = CAST(? AS TEXT)", (b"\xff",))
    other.close()
    assert (await look(store, id_)).reason == UNREADABLE_PREFIX + r"\xff"


@pytest.mark.parametrize(
    ("code", "trouble"),
    [
        (sqlite3.SQLITE_BUSY, ErrorKind.BUSY),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, ErrorKind.BUSY),
        (sqlite3.SQLITE_FULL, ErrorKind.FULL),
        (sqlite3.SQLITE_IOERR_FSYNC, ErrorKind.IO),
        (sqlite3.SQLITE_READONLY_DIRECTORY, ErrorKind.READ_ONLY),
        (sqlite3.SQLITE_CANTOPEN, ErrorKind.CANNOT_OPEN),
        (sqlite3.SQLITE_CORRUPT, ErrorKind.DAMAGED),
        (sqlite3.SQLITE_CONSTRAINT, ErrorKind.OTHER),
        (None, ErrorKind.OTHER),
    ],
)
def test_extended_codes_keep_their_kind(code: int | None, trouble: ErrorKind) -> None:
    assert error_kind(code) is trouble


@pytest.mark.parametrize("trouble", list(ErrorKind))
def test_only_a_refusal_is_certain_after_a_commit_was_asked_for(trouble: ErrorKind) -> None:
    reported = to_store_error(DriverError("x", trouble), Path("jobs.db"), maybe_done=True)
    assert reported.maybe_done is (trouble not in (ErrorKind.BUSY, ErrorKind.FULL))
    assert "jobs.db" in str(reported)


def test_a_library_that_is_too_old_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"SQLite 3\.37\.2, and the oldest that Windlass can use is 3\.38\.0"):
        stdlib_driver.check_version((3, 37, 2))
    stdlib_driver.check_version((3, 51, 3))


@pytest.mark.parametrize(("version", "times"), [((3, 51, 2), 1), ((3, 51, 3), 0)])
def test_a_library_that_can_damage_a_file_is_warned_of_once(
    caplog: pytest.LogCaptureFixture, version: tuple[int, int, int], times: int
) -> None:
    stdlib_driver._warn.cache_clear()
    with caplog.at_level(logging.WARNING, "windlass"):
        stdlib_driver.check_version(version)
        stdlib_driver.check_version(version)
    assert len(caplog.records) == times
