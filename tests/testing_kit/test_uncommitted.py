"""Enqueues in callers' transactions, in the store in memory: no committed one is lost, and a read is no enqueue."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.seed import new_job
from windlass.core.jobs.job import NewJob
from windlass.errors import InvalidOption
from windlass.store.memory.store import MemoryStore


@pytest.fixture
async def store() -> AsyncIterator[MemoryStore]:
    opened = MemoryStore()
    yield opened
    await opened.close()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "own.db")) as made:
        yield made


async def is_stored(store: MemoryStore, job: NewJob) -> bool:
    return await store.operator.get([job.id]) != [None]


async def test_a_connection_that_cannot_be_asked_loses_no_job_of_another(
    store: MemoryStore, db: sqlite3.Connection
) -> None:
    job = new_job()
    with closing(sqlite3.connect(":memory:")) as other:
        await store.jobs.enqueue_inside(other, [new_job()], {})
        await store.jobs.enqueue_inside(db, [job], {})
        db.commit()
    with pytest.raises(InvalidOption, match="cannot be used to find out whether it committed"):
        await is_stored(store, job)
    assert await is_stored(store, job)
    assert store.uncommitted == 0


async def test_a_cancelled_call_loses_no_committed_job(store: MemoryStore, db: sqlite3.Connection) -> None:
    job, busy, done = new_job(), threading.Event(), threading.Event()
    await store.jobs.enqueue_inside(db, [job], {})

    def occupy(_: object) -> None:
        busy.set()
        done.wait(5)

    blocker = asyncio.create_task(store._threads.write(occupy, None))
    await asyncio.to_thread(busy.wait, 5)
    db.commit()
    call = asyncio.create_task(store.operator.counts())
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])
    done.set()
    await blocker
    assert await is_stored(store, job)


async def test_a_read_inside_is_no_enqueue_and_writes_nothing(store: MemoryStore, db: sqlite3.Connection) -> None:
    db.execute("BEGIN")
    assert await store.jobs.get_inside(db, [new_job().id]) == [None]
    assert store.uncommitted == 0
    assert db.execute("SELECT name FROM sqlite_schema").fetchall() == []
