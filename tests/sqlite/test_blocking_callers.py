"""Callers without an event loop: they run their own work while the database thread is idle, and queue otherwise."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.sqlite.conftest import Connect, Open
from tests.sqlite.test_db_threads import turn_held
from tests.support.seed import new_job
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.store.records import ClaimRequest
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore
from windlass.store.sqlite.verbs.enqueue import enqueue

T = TypeVar("T")


def by_hand(call: Coroutine[Any, Any, T]) -> T:
    """The answer of a verb that never suspends."""
    with pytest.raises(StopIteration) as end:
        call.send(None)
    value: T = end.value.value
    return value


async def ready(opens: Open) -> SqliteStore:
    """A store whose connections are open."""
    store = opens()
    await store.migrate()
    await store.operator.get([])
    return store


async def elsewhere(work: Callable[[], T]) -> T:
    """In a thread without an event loop."""
    return await asyncio.to_thread(work)


async def test_while_the_database_thread_is_idle_the_caller_runs_its_own_work(opens: Open) -> None:
    store = await ready(opens)
    seen: list[int] = []

    def work(db: Db) -> None:
        seen.append(threading.get_ident())

    def call() -> int:
        by_hand(store._threads.write(work, None))
        by_hand(store._threads.read(work, None))
        return threading.get_ident()

    assert await elsewhere(call) == seen[0] == seen[1]


async def test_a_caller_whose_turn_does_not_come_is_certain_that_nothing_was_done(opens: Open, path: Path) -> None:
    store = await ready(opens)
    job = new_job()

    def call() -> None:
        with pytest.raises(StoreUnavailable, match=r"did not answer within 0\.05 s") as refused:
            store.with_timeout(0.05).jobs.enqueue([job]).send(None)
        assert refused.value.maybe_done is False

    with turn_held(path):
        await elsewhere(call)
    assert await store.operator.get([job.id]) == [None]


async def test_a_foreign_writer_makes_the_caller_wait(opens: Open, connects: Connect) -> None:
    store = await ready(opens)
    foreign = connects()
    foreign.run("BEGIN IMMEDIATE")
    job = new_job()
    call = asyncio.create_task(elsewhere(lambda: by_hand(store.jobs.enqueue([job]))))
    while store._threads._writer._connection_lock.acquire(blocking=False):
        store._threads._writer._connection_lock.release()
        await asyncio.sleep(0)
    assert not call.done()
    foreign.run("COMMIT")
    assert [answer.id for answer in await call] == [job.id]
    foreign.close()


async def test_a_refusal_reaches_its_caller_and_undoes_its_work_alone(opens: Open) -> None:
    store = await ready(opens)
    request = ClaimRequest(runner="nobody", claim=1, quotas=(), types=(), limit=1)

    def call() -> None:
        with pytest.raises(LeaseLost):
            store.jobs.claim(request).send(None)

    await elsewhere(call)
    assert len(await store.jobs.enqueue([new_job()])) == 1


async def test_many_threads_at_once_lose_nothing(opens: Open) -> None:
    store = await ready(opens)
    together = threading.Barrier(8)

    def call() -> list[str]:
        together.wait()
        return [by_hand(store.jobs.enqueue([new_job()]))[0].id for _ in range(25)]

    with ThreadPoolExecutor(8) as pool:
        calls = [asyncio.wrap_future(pool.submit(call)) for _ in range(8)]
        ids = [id_ for some in await asyncio.gather(*calls) for id_ in some]
    assert None not in await store.operator.get(ids)
    assert len(set(ids)) == 200


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, MemoryError])
async def test_an_interrupt_in_the_midst_of_a_call_leaves_nothing_behind(
    opens: Open, path: Path, interrupt: type[BaseException]
) -> None:
    store = await ready(opens)
    job = new_job()

    def broken_off(db: Db) -> None:
        enqueue(db, [job])
        raise interrupt

    def call() -> None:
        for call in (store._threads.write, store._threads.read):
            with pytest.raises(interrupt):
                call(broken_off if call == store._threads.write else _raises(interrupt), None).send(None)
        assert by_hand(store.jobs.enqueue([new_job()]))

    await elsewhere(call)
    other = opens()
    assert await other.jobs.enqueue([new_job()]), "another process is not held up"
    assert await store.operator.get([job.id]) == [None]


def _raises(interrupt: type[BaseException]) -> Callable[[Db], None]:
    def work(db: Db) -> None:
        raise interrupt

    return work


async def test_a_call_in_the_midst_of_a_call_is_refused_instead_of_waiting_for_itself(opens: Open) -> None:
    store = await ready(opens)

    def work(db: Db) -> None:
        with pytest.raises(StoreUnavailable, match="called during another call of this thread"):
            store.jobs.enqueue([new_job()]).send(None)

    await elsewhere(lambda: by_hand(store._threads.write(work, None)))


async def test_a_closed_store_refuses(opens: Open) -> None:
    store = await ready(opens)
    await store.close()

    def call() -> None:
        with pytest.raises(StoreUnavailable, match="closed"):
            store.jobs.enqueue([new_job()]).send(None)

    await elsewhere(call)
