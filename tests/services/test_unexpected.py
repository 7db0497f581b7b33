"""Unexpected errors, and queues that cannot be written to: handlers and other queues go on."""

import asyncio
from typing import Any

import pytest

from tests.services.parts import Listener, one_work
from tests.support.seed import claim_one, completed, enqueue_one, nothing, open_lease, status_of
from windlass import App, Status, StoreUnavailable
from windlass.core.jobs.outcome import Settlement
from windlass.store.contract import Store
from windlass.store.records import Settled
from windlass.worker.handlers.work import Work
from windlass.worker.runner.settler import Settler
from windlass.worker.store_retry import MAX_UNEXPECTED, retry_until_done


class Failing:
    """The jobs of a store whose settlements fail while there is an error for one of their queues."""

    grouped = False

    def __init__(self, store: Store) -> None:
        self._store = store
        self.errors: dict[str, list[Exception]] = {}

    async def settle(self, settlements: list[Settlement]) -> list[Settled]:
        for settlement in settlements:
            if errors := self.errors.get(settlement.queue):
                raise errors.pop()
        return await self._store.jobs.settle(settlements)


class Enqueuer:
    """A settler, with a finished job in each of two queues."""

    def __init__(self, store: Store) -> None:
        failing: Any = Failing(store)
        self.jobs: Failing = failing
        self.listener = Listener()
        self.done: list[Work] = []
        self.settler = Settler(failing, self.listener, self.done.extend, lambda: False, verbose=False)

    async def add(self, store: Store, queue: str) -> str:
        app = App("sqlite:///never-opened.db")
        app.task(type="t")(nothing)
        id_ = await enqueue_one(store, queue=queue)
        job = await claim_one(store, queues=(queue,), claim=len(self.done) + self.settler.backlog)
        self.settler.add(one_work(app, job), completed(job))
        return id_


@pytest.fixture
async def desk(store: Store) -> Enqueuer:
    await open_lease(store)
    return Enqueuer(store)


async def test_a_queue_that_cannot_be_written_to_holds_up_no_other(store: Store, desk: Enqueuer) -> None:
    desk.jobs.errors["far"] = [StoreUnavailable("away") for _ in range(1000)]
    far, near = await desk.add(store, "far"), await desk.add(store, "near")
    running = asyncio.create_task(desk.settler.run())
    await _until(lambda: len(desk.done) == 1)
    later = await desk.add(store, "near")
    await _until(lambda: len(desk.done) == 2)
    assert [await status_of(store, id_) for id_ in (near, later)] == [Status.COMPLETED] * 2
    assert desk.settler.backlog == 1
    desk.jobs.errors.clear()
    async with asyncio.timeout(30):
        await desk.settler.quiet.wait()
    running.cancel()
    assert await status_of(store, far) is Status.COMPLETED
    assert desk.listener.names == ["StoreFailed", "StoreRecovered"]


async def test_an_unexpected_error_is_reported_and_tried_again(store: Store, desk: Enqueuer) -> None:
    desk.jobs.errors["near"] = [RuntimeError("the handler is closed")]
    id_ = await desk.add(store, "near")
    running = asyncio.create_task(desk.settler.run())
    async with asyncio.timeout(30):
        await desk.settler.quiet.wait()
    running.cancel()
    assert await status_of(store, id_) is Status.COMPLETED
    assert "RuntimeError: the handler is closed" in str(desk.listener.heard[0])


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_an_error_of_ours_that_does_not_pass_is_raised_in_the_end(
    store: Store, desk: Enqueuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("runner.write_delays", "store_retry"):
        monkeypatch.setattr(f"windlass.worker.{module}.MAX_PAUSE", 0.001)
        monkeypatch.setattr(f"windlass.worker.{module}.MIN_PAUSE", 0.001)
    desk.jobs.errors["near"] = [RuntimeError("a bug") for _ in range(1000)]
    await desk.add(store, "near")
    with pytest.raises(RuntimeError, match="a bug"):
        await desk.settler.run()
    assert len(desk.jobs.errors["near"]) == 1000 - MAX_UNEXPECTED - 1

    async def fail() -> None:
        raise RuntimeError("another")

    with pytest.raises(RuntimeError, match="another"):
        await retry_until_done("anything", fail, desk.listener)


async def _until(look: Any) -> None:
    async with asyncio.timeout(30):
        while not look():  # noqa: ASYNC110 - the settler gives no signal for one outcome
            await asyncio.sleep(0.01)
