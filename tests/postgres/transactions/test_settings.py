"""What a caller has set on a connection is the caller's: it neither disturbs us nor is disturbed."""

import asyncio
import threading
from typing import Any

import asyncpg
import psycopg
import psycopg2
import psycopg2.extras
import pytest
import sqlalchemy

from tests.postgres.transactions.drivers import Asyncpg, PsycopgAsync
from tests.support.processes import until
from windlass import App, InvalidOption

WAITING = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@pytest.fixture
def blocking_app(url: str) -> Any:
    """An app of a program without an event loop."""
    made = App(url)
    yield made
    made.close()


@pytest.fixture
def task(blocking_app: App) -> Any:
    """A task of its."""

    @blocking_app.task
    def task(text: str = "") -> None: ...

    return task


def total(app: App) -> int:
    return sum(app.stats.counts().totals.values())


def wait_for_a_lock(url: str) -> None:
    """Until a session waits for one."""
    with psycopg.connect(url, autocommit=True) as watcher:
        until(lambda: watcher.execute(WAITING).fetchone() is not None, "a session waits")


def twice(task: Any, connection: Any) -> None:
    """Both ways in: one statement, and those with keys."""
    task.using(connection=connection).enqueue()
    once = task.using(connection=connection, idempotency_key="k")
    first = once.enqueue("a")
    assert (once.enqueue("b").id, once.enqueue("c").existing) == (first.id, True)
    once.using(on_conflict="replace").enqueue("d")


@pytest.mark.parametrize("factory", [psycopg.Cursor, psycopg.ClientCursor, psycopg.RawCursor, psycopg.ServerCursor])
def test_cursors_and_rows_of_psycopg(blocking_app: App, task: Any, url: str, factory: Any) -> None:
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as connection:
        connection.cursor_factory = factory
        twice(task, connection)
        assert (connection.cursor_factory, connection.row_factory) == (factory, psycopg.rows.dict_row)
    assert total(blocking_app) == 3


@pytest.mark.parametrize("threshold", [None, 0, 1])
def test_prepared_statements_of_psycopg(blocking_app: App, task: Any, url: str, threshold: int | None) -> None:
    with psycopg.connect(url, prepare_threshold=threshold) as connection:
        for _ in range(3):
            task.using(connection=connection).enqueue()
        twice(task, connection)
        row = connection.execute("SELECT count(*) FROM pg_prepared_statements", prepare=False).fetchone()
        assert row is not None
        assert (row[0] > 0) == (threshold is not None)
    assert total(blocking_app) == 6


def test_cursors_of_psycopg2(blocking_app: App, task: Any, url: str) -> None:
    connection = psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)
    twice(task, connection)
    connection.commit()
    connection.close()
    assert total(blocking_app) == 3


async def test_records_and_pooled_statements_of_asyncpg(app: App, work: Any, url: str) -> None:
    class Odd(asyncpg.Record):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter(self.keys())

    connection = await asyncpg.connect(url, record_class=Odd, statement_cache_size=0)
    async with connection.transaction():
        await work.using(connection=connection).aenqueue(1)
        first = await work.using(connection=connection, idempotency_key="k").aenqueue(2)
        assert (await work.using(connection=connection, idempotency_key="k").aenqueue(2)).id == first.id
    await connection.close()
    assert (await app.jobs.aget(first.id)).status == "pending"


def test_sqlalchemy_that_streams(blocking_app: App, task: Any, url: str) -> None:
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        twice(task, connection.execution_options(stream_results=True, yield_per=1))
        connection.commit()
    engine.dispose()
    assert total(blocking_app) == 3


@pytest.mark.parametrize("driver", [psycopg, psycopg2])
def test_an_encoding_that_cannot_say_it_is_named(blocking_app: App, task: Any, url: str, driver: Any) -> None:
    connection = driver.connect(url, client_encoding="LATIN1")
    kept = task.using(connection=connection).enqueue("ä")
    with pytest.raises(InvalidOption, match=r"connection: has a client_encoding, .*, that cannot express '€'"):
        task.using(connection=connection).enqueue("€")
    connection.commit()
    connection.close()
    assert blocking_app.jobs.get(kept.id).payload == {"text": "ä"}


def test_no_encoding_at_all(blocking_app: App, task: Any, url: str) -> None:
    with psycopg.connect(url, client_encoding="SQL_ASCII") as connection:
        twice(task, connection)
        kept = task.using(connection=connection).enqueue("€")
    assert blocking_app.jobs.get(kept.id).payload == {"text": "€"}


def test_a_pipeline_is_refused(task: Any, url: str) -> None:
    refused = pytest.raises(InvalidOption, match="connection: is in pipeline mode")
    with psycopg.connect(url) as connection, connection.pipeline(), refused:
        task.using(connection=connection).enqueue()


def test_a_transaction_in_autocommit_decides(blocking_app: App, task: Any, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        task.using(connection=connection).enqueue()
        with connection.transaction(force_rollback=True):
            task.using(connection=connection).enqueue()
        assert total(blocking_app) == 0
    assert total(blocking_app) == 1


def test_a_connection_is_asked_once_where_it_leads(blocking_app: App, task: Any, url: str) -> None:
    asked: list[str] = []
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    sqlalchemy.event.listen(engine, "before_cursor_execute", lambda c, u, text, *_: asked.append(text))
    for _ in range(3):
        with engine.begin() as connection:
            task.using(connection=connection).enqueue()
    engine.dispose()
    assert len([text for text in asked if '"windlass".identity' in text]) == 1
    assert len(asked[-3:]) == 3
    assert asked[-3].startswith("SAVEPOINT")
    assert asked[-1].startswith("RELEASE"), "three round trips"


def test_two_threads_with_a_connection_each(blocking_app: App, task: Any, url: str) -> None:
    def produce() -> None:
        with psycopg.connect(url) as connection:
            for _ in range(20):
                task.using(connection=connection).enqueue()
                connection.commit()

    threads = [threading.Thread(target=produce) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total(blocking_app) == 40


def test_a_second_producer_with_the_same_key_waits_for_the_first(blocking_app: App, task: Any, url: str) -> None:
    keyed = task.using(idempotency_key="k")
    task.enqueue()
    found: list[Any] = []

    def produce() -> None:
        with psycopg.connect(url) as connection:
            found.append(keyed.using(connection=connection).enqueue())

    second = threading.Thread(target=produce)
    with psycopg.connect(url) as connection:
        first = keyed.using(connection=connection).enqueue()
        second.start()
        wait_for_a_lock(url)
        connection.commit()
    second.join()
    assert (found[0].id, found[0].existing) == (first.id, True)


@pytest.mark.parametrize("kind", [Asyncpg, PsycopgAsync])
async def test_an_enqueue_that_is_cancelled_leaves_the_transaction_as_it_was(
    app: App, work: Any, url: str, kind: Any
) -> None:
    await work.aenqueue(0)
    first, second = kind(), kind()
    for each in (first, second):
        await each.open(url)
    keyed = work.using(idempotency_key="k")
    await first.enqueue(keyed, 1)
    await second.enqueue(work, 2)
    waiting = asyncio.create_task(second.enqueue(keyed, 3))
    await asyncio.to_thread(wait_for_a_lock, url)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await second.commit()
    await first.rollback()
    assert (await app.stats.acounts()).totals["pending"] == 2
    for each in (first, second):
        await each.close()
