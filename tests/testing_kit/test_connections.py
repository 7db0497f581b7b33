"""using(connection=...) in a test app, with connections to SQLite and with SQLAlchemy: their commit decides."""

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as aio

from windlass import App, InvalidOption, KeyConflict
from windlass.testing import assert_enqueued, enqueued, run_all, sandbox


@pytest.fixture
def work(app: App) -> Any:
    @app.task
    def work(number: int) -> int:
        return number

    return work


def numbers(app: App) -> list[int]:
    """The jobs that wait."""
    return [job.payload["number"] for job in enqueued(app)]


@pytest.fixture(params=["file", "wal", "memory"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A database of the test's own, where Windlass has no tables."""
    with contextlib.closing(
        sqlite3.connect(":memory:" if request.param == "memory" else tmp_path / "a b.db")
    ) as made:
        if request.param == "wal":
            made.execute("PRAGMA journal_mode = WAL")
        made.execute("CREATE TABLE orders (number INTEGER)")
        yield made


def test_the_commit_decides(app: App, work: Any, db: sqlite3.Connection) -> None:
    db.row_factory = sqlite3.Row
    db.execute("INSERT INTO orders VALUES (1)")
    job = work.using(connection=db).enqueue(1)
    assert numbers(app) == []
    db.commit()
    assert numbers(app) == [1]
    assert len(run_all(app).completed) == 1
    assert job.result(timeout=1) == 1
    work.using(connection=db).enqueue(2)
    db.rollback()
    work.using(connection=db).enqueue(3)
    db.commit()
    assert numbers(app) == [3]


def test_a_savepoint_takes_the_job_back(app: App, work: Any, db: sqlite3.Connection) -> None:
    work.using(connection=db).enqueue(1)
    db.execute("SAVEPOINT mine")
    work.using(connection=db).enqueue(2)
    db.execute("ROLLBACK TO mine")
    work.using(connection=db).enqueue(3)
    db.commit()
    assert numbers(app) == [1, 3]


def test_errors_and_answers_are_those_of_a_real_transaction(app: App, work: Any, db: sqlite3.Connection) -> None:
    keyed = work.using(idempotency_key="k", connection=db)
    first = keyed.enqueue(1)
    assert keyed.enqueue(2).id == first.id
    with pytest.raises(KeyConflict):
        keyed.using(on_conflict="raise").enqueue(3)
    db.commit()
    assert numbers(app) == [1]


async def test_on_a_running_loop_too(app: App, work: Any, tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "own.db")) as db:
        await work.using(connection=db).aenqueue(1)
        assert numbers(app) == []
        db.commit()
    assert numbers(app) == [1], "though it is closed"


def test_a_closed_database_in_memory_cannot_tell(app: App, work: Any) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        work.using(connection=db).enqueue(1)
        db.commit()
    with pytest.raises(InvalidOption, match="connection: to a database in memory cannot be used"):
        enqueued(app)
    assert enqueued(app) == []


def test_what_cannot_be_seen_to_commit_is_refused(app: App, work: Any) -> None:
    with (
        contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db,
        pytest.raises(InvalidOption, match="connection: is in no transaction"),
    ):
        work.using(connection=db).enqueue(1)
    for wrong in (object(), 7):
        with pytest.raises(InvalidOption, match="connection: must be a connection of sqlite3, psycopg"):
            work.using(connection=wrong).enqueue(1)
    assert enqueued(app) == []


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sqlite3 has no autocommit=False yet")
def test_a_connection_that_is_always_in_a_transaction_needs_a_file(app: App, work: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"autocommit": False}
    with contextlib.closing(sqlite3.connect(tmp_path / "own.db", **options)) as db:
        work.using(connection=db).enqueue(1)
        assert numbers(app) == []
        db.commit()
        assert numbers(app) == [1]
    with (
        contextlib.closing(sqlite3.connect(":memory:", **options)) as memory,
        pytest.raises(InvalidOption, match="use a file"),
    ):
        work.using(connection=memory).enqueue(1)


def test_a_commit_that_fails_enqueues_nothing(app: App, work: Any, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        connection.exec_driver_sql("CREATE TABLE parts (id REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")
        connection.commit()
    with engine.connect() as connection:
        work.using(connection=connection).enqueue(1)
        connection.exec_driver_sql("INSERT INTO parts VALUES (7)")
        with pytest.raises(sqlalchemy.exc.IntegrityError):
            connection.commit()
    assert numbers(app) == []


def test_in_a_sandbox_as_well(real: App, db: sqlite3.Connection) -> None:
    @real.task
    def work(number: int) -> None: ...

    with sandbox(real):
        work.using(connection=db).enqueue(1)
        assert numbers(real) == []
        db.commit()
        assert_enqueued(real, work, 1, count=1)


@pytest.fixture
def engine() -> Iterator[sqlalchemy.Engine]:
    """An engine on a database in memory, as tests often have it, whose savepoints work."""
    made = sqlalchemy.create_engine("sqlite://")

    @sqlalchemy.event.listens_for(made, "connect")
    def leave_begin(connection: Any, _: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")

    @sqlalchemy.event.listens_for(made, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN")

    yield made
    made.dispose()


def test_a_connection_of_sqlalchemy(app: App, work: Any, engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection:
        work.using(connection=connection).enqueue(1)
        with connection.begin_nested() as outer:
            with connection.begin_nested():
                work.using(connection=connection).enqueue(2)
            outer.rollback()
        with connection.begin_nested():
            work.using(connection=connection).enqueue(3)
        assert numbers(app) == []
        connection.commit()
        work.using(connection=connection).enqueue(4)
        assert numbers(app) == [1, 3]
    assert numbers(app) == [1, 3]


def test_a_session_of_sqlalchemy(app: App, work: Any, engine: sqlalchemy.Engine) -> None:
    with orm.Session(engine) as session:
        work.using(connection=session).enqueue(1)
        with session.begin_nested() as outer:
            with session.begin_nested():
                work.using(connection=session).enqueue(2)
            outer.rollback()
        with session.begin_nested():
            work.using(connection=session).enqueue(3)
        assert numbers(app) == []
        session.commit()
        assert numbers(app) == [1, 3]
        work.using(connection=session).enqueue(4)
        session.rollback()
        work.using(connection=session).enqueue(5)
    assert numbers(app) == [1, 3]


def test_a_session_commits_inside_a_transaction_that_the_test_rolls_back(
    app: App, work: Any, engine: sqlalchemy.Engine
) -> None:
    with engine.connect() as connection, connection.begin() as outside:
        with orm.Session(connection, join_transaction_mode="create_savepoint") as session:
            work.using(connection=session).enqueue(1)
            session.commit()
            work.using(connection=session).enqueue(2)
        outside.rollback()
    assert numbers(app) == [1]


def test_a_scoped_session(app: App, work: Any, engine: sqlalchemy.Engine) -> None:
    scoped = orm.scoped_session(orm.sessionmaker(engine))
    work.using(connection=scoped).enqueue(1)
    scoped.commit()
    scoped.remove()
    assert numbers(app) == [1]


async def test_the_asynchronous_ones(app: App, work: Any, tmp_path: Path) -> None:
    engine = aio.create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/own.db")
    async with engine.connect() as connection:
        await work.using(connection=connection).aenqueue(1)
        assert numbers(app) == []
        await connection.commit()
        await work.using(connection=connection).aenqueue(2)
    async with aio.AsyncSession(engine) as session:
        await work.using(connection=session).aenqueue(3)
        await session.commit()
        await work.using(connection=session).aenqueue(4)
        await session.rollback()
    assert numbers(app) == [1, 3]
    await engine.dispose()


DJANGO = """
import django
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()
from django.db import transaction
from django.test import TestCase
from windlass import App, InvalidOption
from windlass.testing import enqueued

app = App.testing()
@app.task
def work(number: int) -> None: ...
add = work.using(connection="default").enqueue

with transaction.atomic():
    add(1)
    try:
        with transaction.atomic():
            add(2)
            raise ZeroDivisionError
    except ZeroDivisionError:
        add(3)
    print(enqueued(app))
try:
    with transaction.atomic():
        work.using(connection="default", idempotency_key="k").enqueue(4)
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
with transaction.atomic():
    print(work.using(connection="default", idempotency_key="k").enqueue(5).existing)
print([job.payload["number"] for job in enqueued(app)])
try:
    add(6)
except InvalidOption as error:
    print(error)
with transaction.atomic(), TestCase.captureOnCommitCallbacks(execute=True):
    with transaction.atomic():
        add(7)
    print(len(enqueued(app)))
"""


def test_django_decides_by_on_commit() -> None:
    pytest.importorskip("django")
    reported = subprocess.run([sys.executable, "-c", DJANGO], capture_output=True, text=True, timeout=60, check=False)
    assert reported.stderr == ""
    assert reported.stdout.splitlines() == [
        "[]",
        "False",
        "[1, 3, 5]",
        "connection: is in no transaction: use `with transaction.atomic():`; the jobs exist once you commit",
        "3",
    ]
