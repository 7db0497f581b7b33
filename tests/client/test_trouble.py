"""When the store does not answer: certain failures say so, uncertain ones carry the id, and repeating is safe."""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.labour import total
from tests.support.addresses import on_sqlite
from windlass import (
    App,
    ConfigError,
    EnqueueFailed,
    EnqueueUnknown,
    NewJob,
    SchemaMismatch,
    StoreUnavailable,
    Task,
)
from windlass.core.jobs.job import Enqueued


@contextmanager
def locked_jobs(path: Path) -> Iterator[None]:
    """Hold the turn to write, as a process does that is stuck in the middle of its transaction."""
    descriptor = os.open(path.with_name(path.name + "-turn"), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


@pytest.fixture
def hasty(path: Path) -> Iterator[App]:
    """An app that gives up soon."""
    made = App(f"sqlite:///{path}?durability=relaxed", deadline=0.3)
    yield made
    made.close()


def one_task(app: App) -> Task[[int], None, None]:
    @app.task(type="t")
    def task(number: int) -> None: ...

    return task


def test_a_store_that_stays_locked_fails_the_enqueue_for_certain(hasty: App, path: Path) -> None:
    task = one_task(hasty)
    task.enqueue(1)
    with locked_jobs(path):
        with pytest.raises(EnqueueFailed, match=r"^nothing was stored: .*jobs\.db did not answer within 0.3 s"):
            task.enqueue(2)
        with pytest.raises(EnqueueFailed):
            hasty.enqueue_many([task.job(3), task.job(4)])
    assert total(hasty) == 1
    task.enqueue(5)
    assert total(hasty) == 2


async def test_the_async_form_fails_for_certain_too(hasty: App, path: Path) -> None:
    task = one_task(hasty)
    await task.aenqueue(1)
    with locked_jobs(path), pytest.raises(EnqueueFailed, match="nothing was stored"):
        await task.aenqueue(2)
    assert sum((await hasty.stats.acounts()).totals.values()) == 1


def test_other_verbs_pass_the_trouble_on(hasty: App, path: Path) -> None:
    hasty.queues.pause("default")
    with locked_jobs(path), pytest.raises(StoreUnavailable, match="did not answer within") as caught:
        hasty.queues.resume("default")
    assert caught.value.maybe_done is False
    assert hasty.queues.get("default").paused


def test_looking_needs_no_turn(hasty: App, path: Path) -> None:
    handle = one_task(hasty).enqueue(1)
    with locked_jobs(path):
        assert hasty.jobs.get(handle.id).payload == {"number": 1}


class LostReply:
    """A store whose first enqueue is done, but whose answer is lost on the way."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.jobs = self
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers: list[Enqueued] = await self._store.jobs.enqueue(jobs)
        if not self.lost:
            self.lost = len(answers)
            raise StoreUnavailable("the reply was lost", maybe_done=True)
        return answers


@pytest.fixture
def lossy(app: App) -> App:
    """The app, with the first answer to an enqueue lost."""
    app.stats.counts()
    store: Any = LostReply(app._store_handle.connect())
    app._store_handle.opened = (os.getpid(), store)
    return app


def test_an_unknown_outcome_says_so_and_carries_the_id(lossy: App) -> None:
    task = one_task(lossy)
    with pytest.raises(EnqueueUnknown, match="enqueue the same id again") as caught:
        task.enqueue(1)
    again = task.using(id=caught.value.id).enqueue(1)
    assert (again.id, again.existing) == (caught.value.id, True)
    assert total(lossy) == 1


def test_an_unknown_outcome_of_many_carries_every_id(lossy: App) -> None:
    task = one_task(lossy)
    batch = [task.job(number) for number in range(5)]
    with pytest.raises(EnqueueUnknown, match="and 2 more") as caught:
        lossy.enqueue_many(batch)
    assert caught.value.ids == [job.id for job in batch]
    handles = lossy.enqueue_many(batch)
    assert [handle.id for handle in handles] == caught.value.ids
    assert total(lossy) == 5


async def test_work_that_began_before_the_deadline_is_unknown_and_work_that_did_not_is_certain(hasty: App) -> None:
    """The writer is held up in the middle of one enqueue, with another waiting behind it."""
    task = one_task(hasty)
    await task.aenqueue(0)
    store = await hasty._ready()
    access: Any = store.jobs._access  # type: ignore[attr-defined]
    began, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold_up(db: Any) -> None:
        loop.call_soon_threadsafe(began.set)
        asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()

    held = asyncio.create_task(access.write(hold_up))
    await began.wait()
    with pytest.raises(EnqueueFailed):
        await task.aenqueue(1)
    with pytest.raises(StoreUnavailable) as caught:
        await held
    go_on.set()
    assert caught.value.maybe_done is True
    assert sum((await hasty.stats.acounts()).totals.values()) == 1


@on_sqlite
def test_a_newer_schema_passes_through_as_it_is(app: App, path: Path) -> None:
    app.stats.counts()
    app.close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO windlass_schema (number, name) VALUES (9999, '9999_future')")
    connection.close()
    with pytest.raises(SchemaMismatch, match=r"step 9999_future, which this version .* cannot work with: upgrade"):
        one_task(app).enqueue(1)


def test_a_missing_folder_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/nowhere/jobs.db")
    with pytest.raises((EnqueueFailed, ConfigError), match="nowhere"):
        one_task(app).enqueue(1)
    app.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear reader, " * 1000)
    app = App(f"sqlite:///{tmp_path}/letter.txt")
    with pytest.raises(EnqueueFailed, match="is not an SQLite database"):
        one_task(app).enqueue(1)
    app.close()
    assert (tmp_path / "letter.txt").read_text() == "Dear reader, " * 1000


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("mysql://localhost/jobs", "unknown store 'mysql'"),
        ("jobs.db", "write sqlite:///jobs.db"),
        ("sqlite://jobs.db", "three or four slashes"),
        ("sqlite:///", "names no file"),
        ("sqlite:///jobs.db?durability=maybe", "durability is full or relaxed, not 'maybe'"),
        ("sqlite:///jobs.db?speed=high", "unknown option 'speed'"),
        ("postgresql://me:hunter2@db/jobs?schema=Jobs", r"me:\*\*\*@db/jobs.*: schema is up to 50 small letters"),
        ("postgresql://me:hunter2@db", r"me:\*\*\*@db: names no database"),
        ("postgresql://me:hunter2@db/jobs?speed=high", r"me:\*\*\*@db/jobs.*: unknown option 'speed'"),
    ],
)
def test_a_bad_address_is_explained_by_the_first_verb(address: str, problem: str) -> None:
    app = App(address)
    with pytest.raises(ConfigError, match=problem) as caught:
        one_task(app).enqueue(1)
    assert "hunter2" not in str(caught.value)
    app.close()
