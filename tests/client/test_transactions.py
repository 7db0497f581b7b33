"""using(connection=...): the job is part of the caller's own transaction."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from windlass import App, EnqueueFailed, InvalidOption, SchemaMismatch, Task, chain, group
from windlass.testing import context


@pytest.fixture
def app(path: Path) -> Iterator[App]:
    """An app that opens its file as the code around it does."""
    made = App(f"sqlite:///{path}?durability=relaxed&driver=sqlite3")
    yield made
    made.close()


@pytest.fixture
def work(app: App) -> Task[[int], None, None]:
    """A task of a queue with settings of its own."""
    app.queue("mail", max_attempts=7)

    @app.task(queue="mail")
    def work(number: int) -> None: ...

    return work


@pytest.fixture
def theirs(app: App, path: Path) -> Iterator[sqlite3.Connection]:
    """The caller's connection and a table of the caller's. Our tables are there; the app has written nothing yet."""
    other = App(app.store)
    other.stats.counts()
    other.close()
    with contextlib.closing(sqlite3.connect(path, timeout=0.1)) as connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
        yield connection


def total(app: App) -> int:
    return sum(app.stats.counts().totals.values())


def seen(path: Path) -> int:
    """The jobs that others see."""
    with contextlib.closing(sqlite3.connect(path)) as another:
        return int(another.execute("SELECT count(*) FROM windlass_jobs").fetchone()[0])


def test_the_job_is_there_when_the_caller_commits_and_not_before(
    app: App, work: Any, theirs: Any, path: Path
) -> None:
    theirs.execute("INSERT INTO orders VALUES (1)")
    handle = work.using(connection=theirs).enqueue(1)
    assert (handle.existing, seen(path)) == (False, 0)
    theirs.commit()
    assert app.jobs.get(handle.id).max_attempts == 7, "what the code declares holds, though no thread could write it"


@pytest.mark.parametrize("commits", [True, False])
def test_a_graph_is_there_as_a_whole_if_the_caller_commits(app: App, work: Any, theirs: Any, commits: bool) -> None:
    theirs.execute("INSERT INTO orders VALUES (1)")
    with app.flow("order", connection=theirs) as flow:
        first = flow.add(work.job(1))
        flow.add(work.job(2), after=[first], when="dead")
    (theirs.commit if commits else theirs.rollback)()
    assert total(app) == (4 if commits else 0), "the flow, two nodes, and the join between them"


def test_nothing_is_left_when_the_caller_rolls_back(app: App, work: Any, theirs: Any) -> None:
    theirs.execute("INSERT INTO orders VALUES (1)")
    work.using(connection=theirs).enqueue(1)
    theirs.rollback()
    assert total(app) == 0
    assert theirs.execute("SELECT * FROM orders").fetchall() == []


def test_without_a_statement_of_the_callers_it_begins_the_transaction_that_sqlite3_would(
    app: App, work: Any, theirs: Any
) -> None:
    work.using(connection=theirs).enqueue(1)
    assert theirs.in_transaction
    theirs.rollback()
    with theirs:
        work.using(connection=theirs).enqueue(2)
    assert total(app) == 1


def test_many_jobs_in_one_transaction(app: App, work: Any, theirs: Any, path: Path) -> None:
    handles = app.enqueue_many([work.job(n) for n in range(100)], connection=theirs)
    assert seen(path) == 0
    theirs.commit()
    assert total(app) == len({handle.id for handle in handles}) == 100


def test_jobs_that_were_made_with_a_connection_are_part_of_its_transaction(
    app: App, work: Any, theirs: Any, path: Path
) -> None:
    inside = work.using(connection=theirs)
    many = app.enqueue_many(inside.job(number) for number in range(3))
    links = chain(inside.job(1), inside.using(priority=3).job(2)).enqueue()
    assert (len(many), len(links.links), seen(path)) == (3, 2, 0)
    theirs.rollback()
    assert total(app) == 0
    app.enqueue_many([inside.job(number) for number in range(3)])
    theirs.commit()
    assert total(app) == 3


def test_a_handler_enqueues_children_in_its_own_transaction(app: App, work: Any, theirs: Any, path: Path) -> None:
    ctx = context(app)
    ctx.enqueue(work.using(connection=theirs), 1)
    ctx.enqueue(work.using(connection=theirs).job(2))
    assert seen(path) == 0
    theirs.commit()
    assert total(app) == 2


def test_jobs_of_one_call_are_part_of_one_transaction(app: App, work: Any, theirs: Any) -> None:
    inside, outside = work.using(connection=theirs).job(1), work.job(2)
    with pytest.raises(InvalidOption, match="connection: job 2 of 2 has none, unlike the first"):
        app.enqueue_many([inside, outside])
    with pytest.raises(InvalidOption, match="connection: job 2 of 2 has another"):
        app.enqueue_many([outside, inside])
    with pytest.raises(InvalidOption, match="connection: job 1 of 2 has another"):
        chain(inside, outside).enqueue(connection=sqlite3.connect(":memory:"))
    app.enqueue_many([inside, outside], connection=theirs)
    theirs.rollback()
    assert total(app) == 0


def test_a_schedule_takes_no_job_of_a_transaction(app: App, work: Any, theirs: Any) -> None:
    job = work.using(connection=theirs).job(1)
    with pytest.raises(InvalidOption, match="connection: is of no use to a schedule"):
        app.schedule("hourly", job, every="1h")
    with pytest.raises(InvalidOption, match="connection: is of no use to a schedule"):
        app.schedules.add("hourly", job, every="1h")


def test_jobs_made_from_rows_of_the_same_transaction(app: App, work: Any, theirs: Any, path: Path) -> None:
    theirs.executemany("INSERT INTO orders VALUES (?)", [(number,) for number in range(100)])
    rows = theirs.execute("SELECT number FROM orders ORDER BY number")
    handles = app.enqueue_many((work.job(number) for (number,) in rows), connection=theirs)
    assert (len(handles), seen(path)) == (100, 0)
    theirs.commit()
    assert total(app) == 100


def test_an_iterator_that_raises_half_way_leaves_the_transaction_as_it_was(app: App, work: Any, theirs: Any) -> None:
    theirs.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(ZeroDivisionError):
        app.enqueue_many((work.job(1 // number) for number in (2, 1, 0)), connection=theirs)
    theirs.commit()
    assert total(app) == 0
    assert theirs.execute("SELECT number FROM orders").fetchall() == [(1,)]


async def test_on_an_event_loop_the_same(app: App, work: Any, theirs: Any) -> None:
    handle = await work.using(connection=theirs).aenqueue(1)
    await app.aenqueue_many([work.job(2)], connection=theirs)
    theirs.commit()
    assert (await app.jobs.aget(handle.id)).status == "pending"


def test_a_savepoint_of_the_callers_takes_the_job_back(app: App, work: Any, theirs: Any) -> None:
    theirs.execute("BEGIN")
    kept = work.using(connection=theirs).enqueue(1)
    theirs.execute("SAVEPOINT mine")
    work.using(connection=theirs).enqueue(2)
    theirs.execute("ROLLBACK TO mine")
    theirs.commit()
    assert total(app) == 1
    assert app.jobs.get(kept.id).status == "pending"


def test_options_of_the_task_and_of_the_connection_go_together(app: App, work: Any, theirs: Any) -> None:
    once = work.using(connection=theirs).using(idempotency_key="k", priority=5)
    first, second = once.enqueue(1), once.enqueue(2)
    assert (second.id, second.existing) == (first.id, True)
    theirs.commit()
    assert app.jobs.get(first.id).priority == 5
    with pytest.raises(InvalidOption, match="priority"):
        work.using(connection=theirs, priority=10**9)
    assert not work.using(connection=theirs).using(connection=None).enqueue(3).existing
    assert total(app) == 2, "None is no connection"


@pytest.mark.parametrize(("rows", "text"), [(sqlite3.Row, str), (lambda cursor, row: {"row": row}, bytes)])
def test_what_the_caller_makes_of_rows_and_texts_is_the_callers(
    app: App, work: Any, theirs: Any, rows: Any, text: Any
) -> None:
    theirs.row_factory, theirs.text_factory = rows, text
    work.using(connection=theirs, idempotency_key="k").enqueue(1)
    assert work.using(connection=theirs, idempotency_key="k").enqueue(1).existing
    assert (theirs.row_factory, theirs.text_factory) == (rows, text)
    theirs.commit()
    assert total(app) == 1


def test_a_second_producer_with_the_same_key_waits_for_the_first_and_then_finds_its_job(
    app: App, work: Any, theirs: Any, path: Path
) -> None:
    first = work.using(connection=theirs, idempotency_key="k").enqueue(1)
    with contextlib.closing(sqlite3.connect(path, timeout=0.01)) as second:
        with pytest.raises(EnqueueFailed, match=r"nothing was stored: .*is busy"):
            work.using(connection=second, idempotency_key="k").enqueue(2)
        assert not second.in_transaction
        theirs.commit()
        found = work.using(connection=second, idempotency_key="k").enqueue(2)
        assert (found.id, found.existing) == (first.id, True)


def test_a_transaction_that_read_before_another_wrote_is_told_how_to_begin(
    app: App, work: Any, theirs: Any, path: Path
) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=0.01)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM orders").fetchall()
        with theirs:
            theirs.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(EnqueueFailed, match="begin it with BEGIN IMMEDIATE"):
            work.using(connection=reader).enqueue(1)
        assert reader.in_transaction, "it is still the caller's"
        reader.execute("ROLLBACK")
    assert total(app) == 0


def test_autocommit_without_a_transaction_is_refused(app: App, work: Any, theirs: Any) -> None:
    theirs.isolation_level = None
    with pytest.raises(InvalidOption, match="connection: is in no transaction: begin one first"):
        work.using(connection=theirs).enqueue(1)
    theirs.execute("BEGIN")
    work.using(connection=theirs).enqueue(1)
    theirs.execute("COMMIT")
    assert total(app) == 1


@pytest.mark.parametrize("other", ["other.db", ":memory:"])
def test_a_connection_to_another_file_is_refused(app: App, work: Any, theirs: Any, path: Path, other: str) -> None:
    where = other if other.startswith(":") else path.with_name(other)
    with contextlib.closing(sqlite3.connect(where)) as stranger:
        with pytest.raises(InvalidOption, match=r"connection: is open on .*, and the jobs are in .*jobs\.db"):
            work.using(connection=stranger).enqueue(1)
        assert not stranger.in_transaction


@pytest.mark.parametrize("wrong", [42, object(), "default", sqlite3])
def test_what_is_no_connection_is_refused(work: Any, wrong: Any) -> None:
    with pytest.raises(InvalidOption, match="connection: must be a connection of sqlite3, a Connection or Session"):
        work.using(connection=wrong).enqueue(1)


def test_a_closed_connection_hands_nothing_in(app: App, work: Any, path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.close()
    with pytest.raises(EnqueueFailed, match="Cannot operate on a closed database"):
        work.using(connection=connection).enqueue(1)


def test_through_the_default_driver_it_is_refused_before_anything_is_opened(path: Path) -> None:
    app = App(f"sqlite:///{path}")

    @app.task
    def work() -> None: ...

    with contextlib.closing(sqlite3.connect(path)) as theirs:
        with pytest.raises(InvalidOption, match=rf"give the app sqlite:///{path}\?driver=sqlite3"):
            work.using(connection=theirs).enqueue()
        assert theirs.execute("SELECT * FROM sqlite_schema").fetchall() == []
    app.close()


def test_the_tables_are_made_first_where_the_caller_is_in_no_transaction(app: App, work: Any, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        work.using(connection=connection).enqueue(1)
        connection.commit()
    assert total(app) == 1


def test_the_tables_are_never_made_inside_the_callers_transaction(work: Any, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE orders (number INTEGER)")
        connection.execute("INSERT INTO orders VALUES (1)")
        with pytest.raises(SchemaMismatch, match="run `windlass migrate` first"):
            work.using(connection=connection).enqueue(1)
        connection.commit()
        assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("orders",)]


def test_an_error_in_mid_enqueue_leaves_the_callers_own_rows_alone(app: App, work: Any, theirs: Any) -> None:
    theirs.execute("CREATE TRIGGER no BEFORE INSERT ON windlass_jobs BEGIN SELECT RAISE(ABORT, 'not today'); END")
    theirs.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(EnqueueFailed, match=r"nothing was stored: .*not today"):
        work.using(connection=theirs).enqueue(1)
    theirs.commit()
    assert theirs.execute("SELECT * FROM orders").fetchall() == [(1,)]
    assert theirs.execute("SELECT * FROM windlass_queues").fetchall() == [], "not even a queue of the failed enqueue"


def test_an_error_that_ends_the_callers_transaction_says_so(work: Any, theirs: Any) -> None:
    theirs.execute("CREATE TRIGGER no BEFORE INSERT ON windlass_jobs BEGIN SELECT RAISE(ROLLBACK, 'full'); END")
    theirs.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(EnqueueFailed, match="SQLite has rolled back your transaction"):
        work.using(connection=theirs).enqueue(1)


CRASH = """
import os, signal, sqlite3, sys
from windlass import App
app = App(sys.argv[2])
@app.task
def work(number: int) -> None: ...
theirs = sqlite3.connect(sys.argv[1])
theirs.execute("INSERT INTO orders VALUES (1)")
work.using(connection=theirs).enqueue(1)
if sys.argv[3] == "after": theirs.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("when", "jobs"), [("before", 0), ("after", 1)])
def test_a_crash_before_the_commit_leaves_neither_order_nor_job_and_after_it_both(
    app: App, theirs: Any, path: Path, when: str, jobs: int
) -> None:
    theirs.commit()
    words = [sys.executable, "-c", CRASH, str(path), app.store, when]
    assert subprocess.run(words, timeout=60, check=False, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert total(app) == jobs
    assert len(theirs.execute("SELECT * FROM orders").fetchall()) == jobs


async def test_a_waiter_notices_the_commit(app: App, work: Any, theirs: Any) -> None:
    store = await app._ready()
    mark = store.signals.cursor()
    await work.using(connection=theirs).aenqueue(1)
    theirs.commit()
    assert await store.signals.wait(mark, 20) is True


def test_with_a_library_that_must_not_checkpoint_beside_others_the_callers_commits_do_not(
    work: Any, theirs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, pages in (((3, 51, 3), 1000), ((3, 51, 2), 0)):
        monkeypatch.setattr(sqlite3, "sqlite_version_info", version)
        work.using(connection=theirs).enqueue(1)
        assert theirs.execute("PRAGMA wal_autocheckpoint").fetchall() == [(pages,)]


def test_the_name_of_a_group_or_graph_that_is_taken_is_compared(app: App, work: Any, theirs: Any, path: Path) -> None:
    other = App(app.store)
    again = other.task(type=work.type, queue="mail")(work.definition.handler)
    group([again.job(1)], id="import-7").enqueue()
    with other.flow("order") as flow:
        flow.add(again.job(1))
    other.close()
    theirs.execute("INSERT INTO orders VALUES (1)")
    with pytest.raises(InvalidOption, match="with 1 members, not 2"):
        group([work.job(1), work.job(2)], id="import-7").enqueue(connection=theirs)
    larger = app.flow("order", connection=theirs)
    larger.add(work.job(1))
    larger.add(work.job(2))
    with pytest.raises(InvalidOption, match="with other nodes"):
        larger.enqueue()
    assert group([work.job(1)], id="import-7").enqueue(connection=theirs).existing
    with app.flow("order", connection=theirs) as flow:
        flow.add(work.job(1))
    assert flow.handle.existing
    theirs.commit()
    assert seen(path) == 4


def test_a_flow_that_is_refused_leaves_no_transaction_open(app: App, work: Any, theirs: Any) -> None:
    group([work.job(1)], id="import-7").enqueue()
    with pytest.raises(InvalidOption, match="import-7"):
        group([work.job(1), work.job(2)], id="import-7").enqueue(connection=theirs)
    assert not theirs.in_transaction, "it would hold the write lock until the caller commits"
