"""Records removed by hand: what is left of them in an index delays no other."""

from typing import Any

import pytest

from tests.support.clock import ManualClock
from tests.support.runners import rule
from tests.support.seed import claim_ids, completed, enqueue, enqueue_one, open_lease, put, running, settle, status_of
from windlass.core.flow.rate import parse_rate
from windlass.core.ids import JobId
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.store.redis.store import RedisStore


async def remove(store: RedisStore, id_: JobId) -> None:
    """As a person would."""
    (jobs,) = store._access.server.keys.of_queue("default", ("jobs",))
    assert await store._access.server.wire.command("HDEL", jobs, id_, seconds=5) == 1


@pytest.mark.parametrize("rules", [{}, {"max_concurrency": 10}, {"fair": True}])
async def test_others_are_claimed(store: RedisStore, rules: dict[str, Any]) -> None:
    await rule(store, **rules)
    ids = await enqueue(store, 3)
    await remove(store, ids[1])
    await open_lease(store)
    assert await claim_ids(store) == [ids[0], ids[2]]
    assert not await store.signals.has_work(["default"], None)


async def test_others_get_their_tenant_queues(store: RedisStore) -> None:
    ids = await enqueue(store, 3, tenant="a")
    await remove(store, ids[0])
    await rule(store, fair=True)
    await open_lease(store)
    assert await claim_ids(store) == ids[1:]


async def test_others_are_admitted(store: RedisStore, clock: ManualClock) -> None:
    ids = await enqueue(store, 3, delay=SECOND)
    await remove(store, ids[1])
    clock.advance(2 * SECOND)
    await store.jobs.admit(10)
    assert [await status_of(store, id_) for id_ in (ids[0], ids[2])] == [Status.PENDING] * 2
    assert (await store.jobs.admit(10)).next_due_in is None


RATED = {"concurrency_key": "k", "key_limit": 9, "key_rate": parse_rate("1/m", "rate")}


async def throttle_and_remove(store: RedisStore) -> list[JobId]:
    """The first of three is claimed, the others are throttled, and the second one's record goes."""
    ids = await enqueue(store, 3, **RATED)
    await open_lease(store)
    assert await claim_ids(store) == ids[:1]
    await remove(store, ids[1])
    return ids


async def test_others_of_a_rated_key_are_claimed(store: RedisStore, clock: ManualClock) -> None:
    ids = await throttle_and_remove(store)
    later = await enqueue_one(store, **RATED)
    assert await claim_ids(store) == [], "both are throttled"
    assert await status_of(store, later) is Status.SCHEDULED
    clock.advance(120 * SECOND)
    await store.jobs.admit(10)
    assert await status_of(store, ids[2]) is Status.PENDING


async def test_others_of_a_rated_key_come_earlier_after_the_clock_was_set_back(
    store: RedisStore, clock: ManualClock
) -> None:
    ids = await throttle_and_remove(store)
    clock.jump_wall(-DAY)
    await store.operator.prune(10)
    clock.advance(120 * SECOND)
    await store.jobs.admit(10)
    assert await status_of(store, ids[2]) is Status.PENDING


async def test_others_are_pruned(store: RedisStore, clock: ManualClock) -> None:
    ids = [await put(store, Status.COMPLETED) for _ in range(3)]
    await remove(store, ids[0])
    clock.advance(1000 * DAY)
    assert set(ids[1:]) <= set(await store.operator.prune(10))
    assert await store.operator.prune(10) == []


async def test_others_move_up_in_a_key_queue(store: RedisStore) -> None:
    first = await running(store, concurrency_key="k")
    gone = await enqueue_one(store, concurrency_key="k")
    last = await enqueue_one(store, concurrency_key="k")
    await remove(store, gone)
    await settle(store, completed(first))
    assert await status_of(store, last) is Status.PENDING
