"""using(connection=...) with SQLAlchemy: its Connection, its Session, and the asynchronous ones."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from windlass import App, EnqueueFailed, InvalidOption

sqlalchemy: Any = pytest.importorskip("sqlalchemy")
orm: Any = pytest.importorskip("sqlalchemy.orm")
aio: Any = pytest.importorskip("sqlalchemy.ext.asyncio")

INSERT = "INSERT INTO orders VALUES (1)"


@pytest.fixture
def app(path: Path) -> Iterator[App]:
    """An app that opens its file as SQLAlchemy does; its tables are there."""
    made = App(f"sqlite:///{path}?durability=relaxed&driver=sqlite3")
    made.stats.counts()
    yield made
    made.close()


@pytest.fixture
def work(app: App) -> Any:
    """A task."""

    @app.task
    def work(number: int) -> None: ...

    return work


@pytest.fixture
def engine(app: App, path: Path) -> Iterator[Any]:
    """The caller's engine, with a table of the caller's."""
    made = sqlalchemy.create_engine(f"sqlite:///{path}")
    with made.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (number INTEGER)")
    yield made
    made.dispose()


@pytest.fixture
async def async_engine(engine: Any, path: Path) -> AsyncIterator[Any]:
    """The same through aiosqlite."""
    pytest.importorskip("aiosqlite")
    made = aio.create_async_engine(f"sqlite+aiosqlite:///{path}")
    yield made
    await made.dispose()


def total(app: App) -> int:
    return sum(app.stats.counts().totals.values())


def orders(engine: Any) -> int:
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM orders").scalar())


def test_begin_commits_both_or_neither(app: App, work: Any, engine: Any) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(INSERT)
        handle = work.using(connection=connection).enqueue(1)
        assert total(app) == 0
    assert app.jobs.get(handle.id).status == "pending"
    with contextlib.suppress(ZeroDivisionError), engine.begin() as connection:
        work.using(connection=connection).enqueue(2)
        connection.exec_driver_sql(INSERT)
        raise ZeroDivisionError
    assert (total(app), orders(engine)) == (1, 1)


def test_a_connection_that_begins_by_itself(app: App, work: Any, engine: Any) -> None:
    with engine.connect() as connection:
        work.using(connection=connection).enqueue(1)
        connection.rollback()
        work.using(connection=connection).enqueue(2)
        connection.commit()
        work.using(connection=connection).enqueue(3)
    assert total(app) == 1


def test_a_session_commits_both_or_neither(app: App, work: Any, engine: Any) -> None:
    with orm.Session(engine) as session:
        session.execute(sqlalchemy.text(INSERT))
        work.using(connection=session).enqueue(1)
        session.rollback()
        session.execute(sqlalchemy.text(INSERT))
        app.enqueue_many([work.job(2), work.job(3)], connection=session)
        session.commit()
    assert (total(app), orders(engine)) == (2, 1)


def test_a_scoped_session_is_a_session(app: App, work: Any, engine: Any) -> None:
    session = orm.scoped_session(orm.sessionmaker(engine))
    work.using(connection=session).enqueue(1)
    session.commit()
    session.remove()
    assert total(app) == 1


def test_where_begin_is_real_savepoints_are_too(app: App, work: Any, engine: Any) -> None:
    """SQLAlchemy's own recipe for SQLite: the driver begins nothing, the engine does."""

    def leave_it_to_us(connection: Any, _: Any) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    sqlalchemy.event.listen(engine, "connect", leave_it_to_us)
    sqlalchemy.event.listen(engine, "begin", begin)
    engine.dispose()
    with engine.begin() as connection:
        kept = work.using(connection=connection).enqueue(1)
        with contextlib.suppress(ZeroDivisionError), connection.begin_nested():
            work.using(connection=connection).enqueue(2)
            raise ZeroDivisionError
    assert total(app) == 1
    assert app.jobs.get(kept.id).status == "pending"


def test_autocommit_is_refused(work: Any, engine: Any) -> None:
    with engine.connect() as connection, pytest.raises(InvalidOption, match="connection: is in no transaction"):
        work.using(connection=connection.execution_options(isolation_level="AUTOCOMMIT")).enqueue(1)


def test_an_engine_is_no_transaction(work: Any, engine: Any) -> None:
    with pytest.raises(InvalidOption, match=r"connection: must be .*, not sqlalchemy\.engine\.base\.Engine"):
        work.using(connection=engine).enqueue(1)


def test_a_closed_connection_hands_nothing_in(app: App, work: Any, engine: Any) -> None:
    connection = engine.connect()
    connection.close()
    with pytest.raises(EnqueueFailed, match="closed"):
        work.using(connection=connection).enqueue(1)
    assert total(app) == 0


def test_a_connection_to_another_file_is_refused(work: Any, tmp_path: Path) -> None:
    other = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/other.db")
    with other.begin() as connection, pytest.raises(InvalidOption, match=r"connection: is open on .*other\.db"):
        work.using(connection=connection).enqueue(1)
    other.dispose()


async def atotal(app: App) -> int:
    return sum((await app.stats.acounts()).totals.values())


async def test_an_async_connection_commits_both_or_neither(app: App, work: Any, async_engine: Any) -> None:
    async with async_engine.begin() as connection:
        await connection.exec_driver_sql(INSERT)
        handle = await work.using(connection=connection).aenqueue(1)
        assert await atotal(app) == 0
    assert (await app.jobs.aget(handle.id)).status == "pending"
    async with async_engine.connect() as connection:
        await work.using(connection=connection).aenqueue(2)
        await connection.rollback()
        await app.aenqueue_many([work.job(3)], connection=connection)
        await connection.commit()
    assert await atotal(app) == 2


async def test_an_async_session_commits_both_or_neither(app: App, work: Any, async_engine: Any) -> None:
    async with aio.AsyncSession(async_engine) as session:
        await session.execute(sqlalchemy.text(INSERT))
        once = work.using(connection=session, idempotency_key="k")
        first = await once.aenqueue(1)
        again = await once.aenqueue(1)
        assert (again.id, again.existing) == (first.id, True)
        await session.commit()
        await work.using(connection=session).aenqueue(2)
        await session.rollback()
    assert await atotal(app) == 1


def test_an_async_connection_is_not_for_blocking_calls(work: Any, async_engine: Any) -> None:
    with pytest.raises(InvalidOption, match="connection: is asynchronous: use `await aenqueue"):
        work.using(connection=aio.AsyncSession(async_engine)).enqueue(1)
