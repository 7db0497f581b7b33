"""Signals: hints that something may have changed."""

import asyncio

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue_one, open_lease, put, request
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.store.contract import Store


async def test_a_wait_ends_without_a_hint_when_nothing_happens(store: Store) -> None:
    await store.operator.counts()
    assert await store.signals.wait(store.signals.cursor(), 0.03) is False


async def test_an_enqueue_wakes_a_waiting_claim(store: Store) -> None:
    await store.operator.counts()
    mark = store.signals.cursor()
    waits = [asyncio.create_task(store.signals.wait(mark, 20)) for _ in range(3)]
    await asyncio.sleep(0)
    await enqueue_one(store)
    assert await asyncio.gather(*waits) == [True, True, True]


async def test_an_enqueue_since_the_cursor_wakes_at_once(store: Store) -> None:
    await store.operator.counts()
    mark = store.signals.cursor()
    await enqueue_one(store)
    assert await store.signals.wait(mark, 20) is True


async def test_a_waiter_does_not_take_the_hint_from_one_that_was_polling(store: Store) -> None:
    """One looks, another waits; the hint comes between the first one's look and its wait."""
    await store.operator.counts()
    mark = store.signals.cursor()
    other = asyncio.create_task(store.signals.wait(mark, 20))
    await asyncio.sleep(0)
    await enqueue_one(store)
    assert await other is True
    assert await store.signals.wait(mark, 20) is True
    assert await store.signals.wait(store.signals.cursor(), 0.03) is False


async def test_a_wait_goes_on_from_hint_to_hint(store: Store) -> None:
    await store.operator.counts()
    for _ in range(20):
        mark = store.signals.cursor()
        waits = asyncio.create_task(store.signals.wait(mark, 20))
        await asyncio.sleep(0)
        await enqueue_one(store)
        assert await waits is True


async def test_a_wait_on_an_unused_store_is_woken_by_its_first_job(store: Store) -> None:
    waits = asyncio.create_task(store.signals.wait(store.signals.cursor(), 20))
    await asyncio.sleep(0)
    await enqueue_one(store)
    assert await waits is True


async def test_closing_the_store_wakes_waiting_calls(store: Store) -> None:
    await store.operator.counts()
    waits = asyncio.create_task(store.signals.wait(store.signals.cursor(), 20))
    await asyncio.sleep(0)
    await store.close()
    assert await waits is True


@pytest.mark.parametrize("status", sorted(set(Status) - {Status.PENDING}))
async def test_only_pending_jobs_are_work(store: Store, status: Status) -> None:
    await put(store, status)
    assert await store.signals.has_work(["default"], None) is False


async def test_pending_jobs_are_work_for_their_queue(store: Store) -> None:
    await enqueue_one(store)
    assert await store.signals.has_work(["default"], None) is True
    assert await store.signals.has_work(["other"], None) is False
    assert await store.signals.has_work([], None) is False


async def test_what_is_claimed_is_no_work_any_more(store: Store) -> None:
    await enqueue_one(store)
    await open_lease(store)
    await store.jobs.claim(request())
    assert await store.signals.has_work(["default"], None) is False


async def test_a_paused_queue_is_no_work(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store)
    await store.queues.pause("default", SECOND)
    assert await store.signals.has_work(["default"], None) is False
    clock.advance(SECOND)
    assert await store.signals.has_work(["default"], None) is True


async def test_a_due_job_is_work_before_it_is_admitted(store: Store, clock: ManualClock) -> None:
    await enqueue_one(store, delay=SECOND)
    assert await store.signals.has_work(["default"], None) is False
    clock.advance(SECOND)
    assert await store.signals.has_work(["default"], None) is True
