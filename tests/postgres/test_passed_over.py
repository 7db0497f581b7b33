"""Jobs whose rows another transaction has locked are passed over, and claimed soon after the lock is gone.

A claim whose connection was cut has its rows locked until the server notices; here another session has them.
"""

import asyncio

import pytest

from tests.postgres.other import Other
from tests.support.seed import claim_ids, enqueue, enqueue_one, open_lease
from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.contract import Store
from windlass.store.postgres.limits import throttle
from windlass.store.postgres.store import PostgresStore
from windlass.store.postgres.verbs import claim

_LOCK = "SELECT FROM windlass.jobs WHERE id = ANY(%s::uuid[]) FOR UPDATE"


class Boot:
    """The boot clock, turned by hand."""

    def __init__(self) -> None:
        self.now: Micros = 1000 * SECOND

    def __call__(self) -> Micros:
        return self.now


@pytest.fixture
def boot(monkeypatch: pytest.MonkeyPatch) -> Boot:
    clock = Boot()
    monkeypatch.setattr(throttle, "since_boot", clock)
    return clock


async def _slow_rescan(store: Store, other: Other, boot: Boot) -> None:
    """A claim that takes half a second, once."""
    await other.does("LOCK windlass.jobs IN ACCESS EXCLUSIVE MODE")
    claiming = asyncio.create_task(claim_ids(store))
    await other.is_waited_for()
    boot.now += SECOND // 2
    await other.commits()
    await claiming


async def _passed_over(store: Store, other: Other, queue: str, limit: int) -> list[JobId]:
    """Jobs that were locked while others were claimed."""
    locked, rest = await enqueue(store, limit, queue=queue), await enqueue(store, 3 * limit, queue=queue)
    await other.does(_LOCK, locked)
    assert await claim_ids(store, queues=(queue,), limit=limit) == rest[:limit]
    await other.commits()
    assert await claim_ids(store, queues=(queue,), limit=limit) == rest[limit : 2 * limit], "while jobs flow"
    return locked


async def test_they_are_claimed_within_a_second_of_a_steady_flow(store: Store, other: Other, boot: Boot) -> None:
    await open_lease(store)
    locked = await _passed_over(store, other, "default", 2)
    boot.now += SECOND
    assert await claim_ids(store, limit=2) == locked


async def test_they_are_claimed_at_once_where_jobs_do_not_flow(store: Store, other: Other, boot: Boot) -> None:
    await open_lease(store)
    locked = await _passed_over(store, other, "default", 2)
    assert set(locked) < set(await claim_ids(store, limit=10))


async def test_a_single_slow_rescan_delays_them_no_longer(store: Store, other: Other, boot: Boot) -> None:
    await open_lease(store)
    await enqueue_one(store)
    await claim_ids(store)
    await _slow_rescan(store, other, boot)
    locked = await _passed_over(store, other, "default", 2)
    boot.now += SECOND
    assert await claim_ids(store, limit=2) == locked


async def test_a_rescan_of_one_queue_does_not_replace_that_of_another(store: Store, other: Other, boot: Boot) -> None:
    """Queues with slots of their own are asked by a statement each."""
    await open_lease(store)
    locked = await _passed_over(store, other, "b", 2)
    await enqueue(store, 2, queue="a")
    boot.now += SECOND
    both = await claim_ids(store, queues=("a", "b"), most=2, limit=4)
    assert set(locked) < set(both)


async def test_only_the_latest_lists_of_queues_are_remembered(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(store, PostgresStore)
    monkeypatch.setattr(claim, "MAX_KNOWN", 3)
    await open_lease(store)
    for number in range(8):
        (id_,) = await enqueue(store, 1, queue=f"q{number}")
        assert await claim_ids(store, queues=(f"q{number}",)) == [id_]
    claims = store.jobs._claims
    assert len(claims._rescans) <= 3
    assert len(claims._returns) <= 3
