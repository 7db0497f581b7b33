"""Sweeps over queues: each has its turn, however much is due in another."""

from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import enqueue, enqueue_one, status_of
from windlass.core.moments import SECOND
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.contract import Store
from windlass.store.records import Admitted
from windlass.store.redis.connection.access import Access
from windlass.store.redis.duties.sweep import MAX_IN_CALL


async def test_one_that_is_due_does_not_wait_behind_very_many_of_another_queue(
    store: Store, clock: ManualClock
) -> None:
    await enqueue(store, 2 * MAX_IN_CALL, queue="large", delay=SECOND)
    other = await enqueue_one(store, queue="small", delay=SECOND + 1)
    clock.advance(2 * SECOND)
    assert await store.jobs.admit(MAX_IN_CALL) == Admitted(MAX_IN_CALL, 0)
    assert await status_of(store, other) is Status.PENDING


async def test_what_one_queue_leaves_is_there_for_the_others(store: Store, clock: ManualClock) -> None:
    await enqueue(store, 20, queue="large", delay=SECOND)
    await enqueue(store, 2, queue="small", delay=SECOND + 1)
    clock.advance(2 * SECOND)
    assert await store.jobs.admit(20) == Admitted(20, 0)
    assert await store.jobs.admit(20) == Admitted(2, None)


async def test_of_more_queues_than_the_limit_the_longest_due_come_first(store: Store, clock: ManualClock) -> None:
    ids = [await enqueue_one(store, queue=f"q{n}", delay=SECOND - n) for n in range(4)]
    clock.advance(2 * SECOND)
    assert await store.jobs.admit(2) == Admitted(2, 0)
    assert [await status_of(store, id_) for id_ in ids] == [Status.SCHEDULED] * 2 + [Status.PENDING] * 2


async def test_expired_jobs_are_returned_although_another_queue_is_away(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups are woken by the ids."""
    reached = await enqueue_one(store, queue="reached", expires=SECOND)
    await enqueue_one(store, queue="away", expires=SECOND)
    clock.advance(2 * SECOND)
    call = Access.call

    async def without_one(access: Access, name: str, queue: str, *request: Any) -> Any:
        if queue == "away":
            raise StoreUnavailable("it is away")
        return await call(access, name, queue, *request)

    monkeypatch.setattr(Access, "call", without_one)
    assert await store.jobs.expire(10) == [reached]
    with pytest.raises(StoreUnavailable):
        await store.jobs.expire(10)
