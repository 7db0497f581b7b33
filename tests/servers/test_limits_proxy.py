"""The proxy with the limits of YugabyteDB, under plain drivers: what fails, and the state of the transaction then."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import asyncpg
import psycopg
import psycopg2
import pytest

from tests.support.limits.faults import Limits
from tests.support.limits.machine import LimitsProxy
from tests.support.servers.address import Address

QUIET = Limits(delay=(0, 0), failing=0, failing_commits=0)
FAILING = QUIET._replace(failing=1)
FAILING_COMMITS = QUIET._replace(failing_commits=1)
LOST = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError)
PSYCOPG_LOST = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

Through = Callable[[Limits], str]


@pytest.fixture
def proxies() -> Iterator[list[LimitsProxy]]:
    made: list[LimitsProxy] = []
    yield made
    for proxy in made:
        proxy.stop()


@pytest.fixture
def through(postgres_url: str, proxies: list[LimitsProxy]) -> Through:
    """The address of an empty database through a proxy with these limits; its table `kept` is there."""
    Address(postgres_url).execute("CREATE TABLE kept (number integer)")

    def open_proxy(limits: Limits) -> str:
        connection = psycopg.connect(postgres_url)
        proxy = LimitsProxy(connection.info.host, connection.info.port, limits)
        connection.close()
        proxy.start()
        proxies.append(proxy)
        return proxy.through(postgres_url)

    return open_proxy


def kept(postgres_url: str) -> list[int]:
    return [number for (number,) in Address(postgres_url).execute("SELECT number FROM kept ORDER BY 1")]


def status_of(connection: psycopg.Connection[Any]) -> int:
    return connection.info.transaction_status


def read_rows(connection: Any) -> Any:
    return connection.cursor("SELECT number FROM kept ORDER BY 1", prefetch=2)


async def connect(url: str) -> Any:
    return await asyncpg.connect(url)


async def test_without_faults_it_passes_everything_on(through: Through, postgres_url: str) -> None:
    connection = await connect(through(QUIET))
    async with connection.transaction():
        await connection.execute("INSERT INTO kept VALUES ($1)", 1)
        await connection.execute("INSERT INTO kept VALUES (2)")
    assert await connection.fetchval("SELECT repeat('x', 300000)") == "x" * 300_000
    await connection.copy_records_to_table("kept", records=[(3,), (4,)])
    async with connection.transaction():
        assert [row[0] async for row in read_rows(connection)] == [1, 2, 3, 4]
    await connection.close()
    assert kept(postgres_url) == [1, 2, 3, 4]


async def test_a_failed_statement_of_its_own_leaves_no_transaction_behind(
    through: Through, postgres_url: str
) -> None:
    connection = await connect(through(FAILING))
    for text, values in (("INSERT INTO kept VALUES (1)", ()), ("INSERT INTO kept VALUES ($1)", (1,))):
        with pytest.raises(LOST):
            await connection.execute(text, *values)
        assert not connection.is_in_transaction()
        await connection.execute("SET work_mem = '1MB'")
    await connection.close()
    assert kept(postgres_url) == []


@pytest.mark.parametrize("values", [(), (1,)], ids=["simple", "extended"])
async def test_a_failed_statement_aborts_its_transaction(
    through: Through, postgres_url: str, values: tuple[int, ...]
) -> None:
    text = "INSERT INTO kept VALUES ($1)" if values else "INSERT INTO kept VALUES (1)"
    connection = await connect(through(FAILING))
    await connection.execute("BEGIN")
    with pytest.raises(LOST):
        await connection.execute(text, *values)
    with pytest.raises(asyncpg.InFailedSQLTransactionError):
        await connection.execute("SAVEPOINT later")
    assert connection.is_in_transaction()
    assert await connection.execute("COMMIT") == "ROLLBACK"  # what a server makes of it
    assert not connection.is_in_transaction()
    await connection.close()
    assert kept(postgres_url) == []


async def test_a_savepoint_saves_a_transaction_from_a_failed_statement(through: Through, postgres_url: str) -> None:
    connection = await connect(through(FAILING))
    await connection.execute("BEGIN")
    await connection.execute("SAVEPOINT before")
    with pytest.raises(LOST):
        await connection.execute("INSERT INTO kept VALUES ($1)", 1)
    await connection.execute("ROLLBACK TO SAVEPOINT before")
    await connection.execute("SET LOCAL work_mem = '1MB'")
    assert await connection.execute("COMMIT") == "COMMIT"
    await connection.close()


async def test_a_failed_commit_has_rolled_back_and_ended_the_transaction(through: Through, postgres_url: str) -> None:
    connection = await connect(through(FAILING_COMMITS))
    await connection.execute("BEGIN")
    await connection.execute("INSERT INTO kept VALUES ($1)", 1)
    with pytest.raises(LOST):
        await connection.execute("COMMIT")
    assert not connection.is_in_transaction()
    await connection.execute("SET work_mem = '1MB'")
    await connection.close()
    assert kept(postgres_url) == []


@pytest.mark.parametrize("values", [(), (1,)], ids=["simple", "extended"])
async def test_the_commit_of_a_single_statement_fails_after_its_rows_were_sent(
    through: Through, postgres_url: str, values: tuple[int, ...], proxies: list[LimitsProxy]
) -> None:
    text = f"INSERT INTO kept VALUES ({'$1' if values else '1'}) RETURNING number"
    connection = await connect(through(FAILING_COMMITS))
    with pytest.raises(LOST):
        await (connection.fetch(text, *values) if values else connection.execute(text))
    assert not connection.is_in_transaction()
    await connection.close()
    assert kept(postgres_url) == []
    assert proxies[0].counts["failed implicit commits"] == 1


def test_psycopg_finds_the_same_states(through: Through, postgres_url: str) -> None:
    with psycopg.connect(through(FAILING)) as connection:
        with pytest.raises(PSYCOPG_LOST):
            connection.execute("INSERT INTO kept VALUES (%s)", (1,))
        assert status_of(connection) == psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        assert status_of(connection) == psycopg.pq.TransactionStatus.IDLE
    with psycopg.connect(through(FAILING_COMMITS)) as connection:
        connection.execute("INSERT INTO kept VALUES (%s)", (1,))
        with pytest.raises(PSYCOPG_LOST):
            connection.commit()
        assert status_of(connection) == psycopg.pq.TransactionStatus.IDLE
    assert kept(postgres_url) == []


def test_psycopg2_finds_the_same_states(through: Through, postgres_url: str) -> None:
    connection = psycopg2.connect(through(FAILING_COMMITS))
    connection.cursor().execute("INSERT INTO kept VALUES (1)")
    with pytest.raises(psycopg2.extensions.TransactionRollbackError):
        connection.commit()
    assert connection.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_IDLE
    connection.close()
    assert kept(postgres_url) == []


def test_after_an_error_in_a_pipeline_everything_until_the_sync_is_skipped(
    through: Through, postgres_url: str
) -> None:
    with psycopg.connect(through(FAILING), autocommit=True) as connection:
        with pytest.raises(PSYCOPG_LOST):
            insert_in_pipeline(connection)
        assert status_of(connection) == psycopg.pq.TransactionStatus.IDLE
    assert kept(postgres_url) == []


def test_a_commit_in_a_pipeline_fails_and_what_follows_is_skipped(through: Through, postgres_url: str) -> None:
    with psycopg.connect(through(FAILING_COMMITS)) as connection:
        with pytest.raises(PSYCOPG_LOST):
            commit_in_pipeline(connection)
        assert status_of(connection) == psycopg.pq.TransactionStatus.IDLE
        connection.autocommit = True
        connection.execute("SET work_mem = '1MB'")
    assert kept(postgres_url) == []


def test_the_commit_of_a_whole_pipeline_fails_as_one(through: Through, postgres_url: str) -> None:
    connection = psycopg.connect(through(FAILING_COMMITS), autocommit=True)
    # libpq cannot leave a pipeline whose commit fails: a deferred constraint without any proxy has the same end.
    with pytest.raises(psycopg.OperationalError, match="while busy"):
        insert_in_pipeline(connection)
    connection.close()
    assert kept(postgres_url) == []


def insert_in_pipeline(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline():
        for number in range(3):
            connection.execute("INSERT INTO kept VALUES (%s)", (number,))


def commit_in_pipeline(connection: psycopg.Connection[Any]) -> None:
    with connection.pipeline() as pipeline:
        connection.execute("INSERT INTO kept VALUES (%s)", (1,))
        connection.commit()
        pipeline.sync()


@pytest.mark.parametrize("text", ["LISTEN hints", "NOTIFY hints", "LOCK TABLE kept", "TRUNCATE kept"])
async def test_what_yugabytedb_lacks_is_refused_in_both_protocols(through: Through, text: str) -> None:
    connection = await connect(through(QUIET))
    for call in (connection.execute, connection.fetch):
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="not supported"):
            await call(f"/* any */ {text.lower()}")
        assert not connection.is_in_transaction()
    await connection.close()


async def test_the_schema_is_changed_outside_of_transactions_only(through: Through) -> None:
    connection = await connect(through(QUIET))
    await connection.execute("CREATE TABLE alone (number integer)")
    for call in (connection.execute, connection.fetch):
        with pytest.raises(asyncpg.FeatureNotSupportedError, match="DDL"):
            async with connection.transaction():
                await call("CREATE TABLE together (number integer)")
    await connection.close()


async def test_every_round_trip_takes_longer_and_pipelined_ones_overlap(
    through: Through, proxies: list[LimitsProxy]
) -> None:
    connection = await connect(through(QUIET._replace(delay=(0.05, 0.05))))
    await connection.fetchval("SELECT $1::int", 1)
    proxies[0].counts.clear()
    before = time.monotonic()
    for number in range(4):
        assert await connection.fetchval("SELECT $1::int", number) == number
    assert time.monotonic() - before >= 0.2
    assert proxies[0].counts["round trips"] == 4
    await connection.close()


def test_a_cancel_request_reaches_the_server(through: Through) -> None:
    with psycopg.connect(through(QUIET)) as connection:
        timer = threading.Timer(0.2, connection.cancel_safe)
        timer.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(60)")
        timer.join()


async def test_one_of_ten_fails_and_the_same_ones_with_the_same_seed(
    through: Through, proxies: list[LimitsProxy]
) -> None:
    seen = []
    for seed in (1, 1, 2):
        connection = await connect(through(QUIET._replace(seed=seed, failing=0.1, failing_commits=0.1)))
        failures = []
        for number in range(300):
            try:
                await connection.execute("SELECT 1")
            except asyncpg.PostgresError as error:
                failures.append((number, error.sqlstate, str(error)))
        seen.append(failures)
        await connection.close()
    assert seen[0] == seen[1] != seen[2]
    assert {state for _, state, _ in seen[0]} == {"40001", "40P01"}
    assert any("Restart read required" in text for _, _, text in seen[0])
    counts = proxies[0].counts
    assert counts["failed statements"] + counts["failed implicit commits"] == len(seen[0])
    assert 30 <= len(seen[0]) <= 90


async def test_money_is_neither_lost_nor_made_by_clients_that_try_again(through: Through, postgres_url: str) -> None:
    """Transfers in transactions of several statements: one that was answered is done, one that failed is not."""
    Address(postgres_url).execute("CREATE TABLE account (id integer PRIMARY KEY, money integer NOT NULL)")
    Address(postgres_url).execute("INSERT INTO account SELECT n, 0 FROM generate_series(1, 4) AS n")
    url = through(Limits(delay=(0, 0.001)))

    async def transfer(number: int) -> int:
        connection, done = await connect(url), 0
        for _ in range(40):
            with suppress(*LOST):
                async with connection.transaction():
                    await connection.execute("UPDATE account SET money = money - 1 WHERE id = $1", number)
                    await connection.execute(f"UPDATE account SET money = money + 1 WHERE id = {number % 4 + 1}")
                    await connection.execute("INSERT INTO kept VALUES ($1)", number)
                done += 1
        await connection.close()
        return done

    done = await asyncio.gather(*(transfer(number) for number in range(1, 5)))
    assert 0 < sum(done) < 160
    assert kept(postgres_url) == sorted(number for number in range(1, 5) for _ in range(done[number - 1]))
    assert Address(postgres_url).execute("SELECT sum(money) FROM account") == [(0,)]
