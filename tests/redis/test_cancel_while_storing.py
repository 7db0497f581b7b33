"""A group that is cancelled while its list is stored in portions: no member is left, also if the producer dies."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import open_lease, request
from tests.support.servers.redis_places import redis_place
from windlass import App, Flow, Status, group
from windlass.coordinator import cancels, duties
from windlass.coordinator.cancels import Cancels
from windlass.core.events import silent
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.redis.connection.access import Access
from windlass.store.redis.duties.tidy import IDLE

MANY = 1800


class Slow:
    """Holds a producer before one of the portions."""

    def __init__(self, portion: int) -> None:
        self.left = portion
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def before(self, script: str) -> None:
        self.left -= script == "store_batch"
        if script == "store_batch" and self.left == 0:
            self.reached.set()
            await self.go_on.wait()


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncIterator[App]:
    app = App(redis_place(tmp_path))
    yield app
    await app.aclose()


@pytest.fixture
async def producer(tmp_path: Path) -> AsyncIterator[App]:
    app = App(redis_place(tmp_path))
    app.task(square)
    yield app
    await app.aclose()


async def square(number: int) -> int:
    return number * number


async def slowly(producer: App, portion: int, queues: int) -> tuple[Slow, Any, asyncio.Task[Any]]:
    """A group whose producer stands still before a portion of it."""
    slow, store = Slow(portion), await producer._ready()

    class SlowAccess(Access):
        async def call(self, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
            await slow.before(name)
            return await super().call(name, queue, request, *blobs)

    store.jobs._access.__class__ = SlowAccess  # type: ignore[attr-defined]
    task = producer.tasks["square"]
    made = group([task.using(queue=f"q{n % queues}").job(n) for n in range(MANY)])
    storing = asyncio.create_task(made.aenqueue())
    await asyncio.wait_for(slow.reached.wait(), 30)
    return slow, made, storing


async def is_over(store: Store, app: App, flow: str) -> Flow:
    found = await app.flows.aget(flow)
    await open_lease(store)
    wanted = request(queues=("q0", "q1", "q2"), types=("square",), limit=10)
    assert await store.jobs.claim(wanted) == []
    return found


@pytest.mark.parametrize(("portion", "queues"), [(2, 1), (4, 1), (3, 3)])
async def test_a_slow_producer_leaves_no_member_of_a_group_that_was_cancelled_meanwhile(
    store: Store, producer: App, operator: App, portion: int, queues: int
) -> None:
    slow, made, storing = await slowly(producer, portion, queues)
    assert (await operator.flows.acancel(made.id)).cancelled < MANY
    slow.go_on.set()
    assert (await storing).id == made.id
    found = await is_over(store, operator, made.id)
    assert (found.status, found.cancelled, found.live) == (Status.CANCELLED, MANY, 0)


@pytest.mark.parametrize(("portion", "queues"), [(2, 1), (4, 1), (3, 3)])
async def test_a_producer_that_dies_leaves_no_member_after_the_next_turn_of_the_coordinator(
    store: Store,
    clock: ManualClock,
    producer: App,
    operator: App,
    portion: int,
    queues: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, made, storing = await slowly(producer, portion, queues)
    monkeypatch.setattr(cancels, "BUDGET_SECONDS", 60.0)
    finishing = Cancels(store, silent)
    await operator.flows.acancel(made.id)
    await finishing.run()
    storing.cancel()
    clock.advance(int(time.time() * SECOND) - clock.wall() + 2 * IDLE)
    await duties.tidy(store)
    await finishing.run()
    found = await is_over(store, operator, made.id)
    assert (found.status, found.cancelled, found.live) == (Status.CANCELLED, MANY, 0)
