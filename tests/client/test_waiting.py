"""A waiter for a result is told of it: nothing polls here, however long it waits."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.client.labour import Labour, raised
from tests.support.addresses import on_stores_with_hints
from tests.support.reported import looked
from windlass import App, Dead, Handle, Job, JobDead, JobNotFound, StoreUnavailable, Task
from windlass.client.runtime import result_waiter as result_waiter
from windlass.core.jobs.outcome import Done
from windlass.store.contract import Store

pytestmark = on_stores_with_hints
FOR_EVER = 10_000.0
MANY = 1000


@pytest.fixture(autouse=True)
def without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_waiter, "pause_after", lambda seconds, signalled: FOR_EVER)


@pytest.fixture
def task(app: App) -> Task[[], int, int]:
    @app.task(type="t", queue="default")
    def task() -> int: ...  # type: ignore[empty-body]

    return task


async def begun(app: App, handle: Handle[int]) -> "asyncio.Task[int]":
    """A wait of which the store knows."""
    waiting = asyncio.create_task(handle.aresult())
    await heard(app)
    return waiting


async def heard(app: App) -> None:
    """Until a waiter on this loop would be told of it."""
    there = app._store_handle.result_waiter(await app._ready())
    async with asyncio.timeout(30):
        while not there._again or there._due or there._watcher.outage is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_completion_is_reported(app: App, task: Task[[], int, int], labour: Labour) -> None:
    waiting = await begun(app, await task.aenqueue())
    await labour.aend(Done("7"))
    assert await waiting == 7


async def test_one_wait_follows_the_other(app: App, task: Task[[], int, int], labour: Labour) -> None:
    for number in range(5):
        waiting = await begun(app, await task.aenqueue())
        await labour.aend(Done(str(number)))
        assert await waiting == number


async def test_a_death_after_a_retry_is_reported(app: App, task: Task[[], int, int], labour: Labour) -> None:
    waiting = await begun(app, await task.aenqueue())
    await labour.aend(raised(ValueError("not yet")))
    await labour.aend(raised(Dead("hopeless")))
    with pytest.raises(JobDead, match="hopeless"):
        await waiting


async def test_a_result_of_which_nothing_is_kept_is_said_to_be_gone(
    app: App, task: Task[[], int, int], labour: Labour
) -> None:
    app.queue("default", retention={"completed": 0})
    handle = await task.aenqueue()
    waiting = await begun(app, handle)
    await labour.aend(Done("7"))
    with pytest.raises(JobNotFound, match=f"^job {handle.id} has completed, and its result is gone") as caught:
        await waiting
    assert caught.value.outcome == "completed"


async def test_a_job_that_was_retried_before_its_end_was_read_is_still_awaited(
    app: App, task: Task[[], int, int], labour: Labour, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = await task.aenqueue()
    waiting = await begun(app, handle)
    store = await app._ready()
    may_look, get = asyncio.Event(), store.operator.get

    async def later(ids: Sequence[str]) -> list[Job | None]:
        await may_look.wait()
        return await get(ids)

    monkeypatch.setattr(app._store_handle.result_waiter(store).store.operator, "get", later)
    await labour.aend(raised(Dead("hopeless")))
    await store.operator.retry([handle.id])
    may_look.set()
    await labour.aend(Done("8"))
    assert await waiting == 8


async def test_several_waiters_for_one_job_all_get_its_result(
    app: App, task: Task[[], int, int], labour: Labour
) -> None:
    handle = await task.aenqueue()
    waiting = [asyncio.create_task(handle.aresult()) for _ in range(3)]
    waiting[0].cancel()
    await heard(app)
    waiting[1].cancel()
    await labour.aend(Done("7"))
    assert await waiting[2] == 7


def test_threads_that_wait_are_notified(app: App, task: Task[[], int, int], labour: Labour) -> None:
    handles = app.enqueue_many([task.job() for _ in range(3)])
    found: list[int] = []
    threads = [threading.Thread(target=lambda each=each: found.append(each.result(timeout=60))) for each in handles]
    for thread in threads:
        thread.start()
    for number in range(3):
        labour.complete(str(number))
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2]


class Counted:
    """A role that counts its calls."""

    def __init__(self, role: Any, calls: Counter[str]) -> None:
        self._role, self._calls = role, calls

    def __getattr__(self, name: str) -> Any:
        self._calls[name] += 1
        return getattr(self._role, name)


async def test_a_thousand_waiters_cost_a_few_calls(
    app: App, task: Task[[], int, int], labour: Labour, monkeypatch: pytest.MonkeyPatch
) -> None:
    handles = await app.aenqueue_many([task.job() for _ in range(MANY)])
    store = await app._ready()
    calls: Counter[str] = Counter()
    monkeypatch.setattr(store, "operator", Counted(store.operator, calls))
    waiting = [asyncio.create_task(each.aresult()) for each in handles]
    await heard(app)
    assert len(app._store_handle._waiters) == 1
    await end_all(labour, store, MANY)
    assert sum(await asyncio.gather(*waiting)) == MANY
    assert calls.keys() == {"get"}
    # Each is seen when it comes, when it is listened for and when it has ended; those of one moment together.
    assert calls["get"] < MANY / 10


async def end_all(labour: Labour, store: Store, jobs: int) -> None:
    done = 0
    while done < jobs:
        done += await labour.aend_many(store, 100, Done("1"))


async def test_closing_the_app_ends_the_wait(app: App, task: Task[[], int, int]) -> None:
    waiting = await begun(app, await task.aenqueue())
    await app.aclose()
    with pytest.raises(StoreUnavailable, match="this store is closed"):
        await waiting


async def test_a_wait_that_is_over_by_time_looks_once_more(
    app: App, task: Task[[], int, int], labour: Labour, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if nothing had been told: the job has ended, and its waiter does not know it."""
    handle = await task.aenqueue()
    store = await app._ready()
    there = app._store_handle.result_waiter(store)
    monkeypatch.setattr(there, "_watcher", Deaf())
    waiting = asyncio.create_task(handle.aresult(timeout=1.0))
    await looked(app)
    await labour.aend(Done("7"))
    assert await waiting == 7


class Deaf:
    """A completion watcher that reports nothing."""

    outage = None

    def watch(self, job: str, queue: str) -> None:
        """In vain."""

    def unwatch(self, job: str) -> None:
        """As before."""

    async def close(self) -> None:
        """Nothing to release."""
