"""Parking without a lock over all queues: what comes between is put right by the next call."""

import pytest

from tests.support.seed import enqueue, look, worker_info
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.redis.duties import park as parking
from windlass.store.redis.store import RedisStore


async def counted(store: Store, status: str) -> int:
    return (await store.operator.counts()).queues["default"][status]


async def test_a_job_parked_as_a_worker_came_that_knows_it_is_freed_by_the_coordinator(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker beats after the coordinator has seen who is there, and before it parks."""
    await store.workers.beat(worker_info("w1", types=("known",)))
    (id_,) = await enqueue(store, 1, type="late")
    seen = await store.workers.list()
    await store.workers.beat(worker_info("w2", types=("late",)))

    async def as_it_was(access: object) -> object:
        return seen

    with monkeypatch.context() as patched:
        patched.setattr(parking, "registered", as_it_was)
        assert await store.jobs.park() == {"late": 1}
    assert (await look(store, id_)).reason == "no worker for type"
    assert await store.jobs.park() == {}
    assert (await look(store, id_)).status is Status.PENDING


async def test_very_many_are_parked_and_freed_in_portions(store: RedisStore) -> None:
    await store.workers.beat(worker_info(types=("known",)))
    for _ in range(6):
        await enqueue(store, 200, type="strange")
    await enqueue(store, 3, type="odd")
    assert sum((await store.jobs.park()).values()) == parking.MAX_PARKED
    assert sum((await store.jobs.park()).values()) == 1203 - parking.MAX_PARKED
    assert await counted(store, "blocked") == 1203
    await store.workers.beat(worker_info(types=("strange",)))
    assert (await counted(store, "pending"), await counted(store, "blocked")) == (1200, 3)


async def test_more_than_a_beat_may_free_is_freed_by_the_next(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MAX_FREED", 300)
    await store.workers.beat(worker_info(types=("known",)))
    for _ in range(3):
        await enqueue(store, 200, type="strange")
    await store.jobs.park()
    known = worker_info(types=("known", "strange"))
    await store.workers.beat(known)
    assert await counted(store, "pending") == 300
    await store.workers.beat(known)
    assert await counted(store, "pending") == 600
