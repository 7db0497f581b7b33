"""Parked jobs of which there are many: a worker registers at once, and they are freed in portions."""

import pytest

from tests.support.clock import ManualClock
from tests.support.seed import claim_ids, enqueue, open_lease, worker_info
from windlass.store.contract import Store
from windlass.store.postgres.verbs import park as on_postgres
from windlass.store.redis.duties import park as on_redis
from windlass.store.sqlite.verbs import park as on_sqlite

TYPES = tuple(f"strange {n}" for n in range(6))
EACH = 20
PORTION = 50


@pytest.fixture(autouse=True)
def _small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_postgres, "UNPARK_BATCH", PORTION)
    monkeypatch.setattr(on_sqlite, "UNPARK_BATCH", PORTION)
    monkeypatch.setattr(on_redis, "MAX_FREED", PORTION)
    monkeypatch.setattr(on_redis, "PORTION", PORTION // 5)


async def park_many(store: Store) -> None:
    await store.workers.beat(worker_info("w1", types=("known",)))
    for type_ in TYPES:
        await enqueue(store, EACH, type=type_)
    while await store.jobs.park():
        pass
    assert await parked(store) == EACH * len(TYPES)


async def parked(store: Store) -> int:
    return (await store.operator.counts()).queues["default"].get("blocked", 0)


async def test_a_beat_frees_a_portion_whatever_the_number_of_types(store: Store) -> None:
    await park_many(store)
    await store.workers.beat(worker_info("w2", types=TYPES))
    assert await parked(store) == EACH * len(TYPES) - PORTION
    assert "w2" in {worker.id for worker in await store.workers.list()}


async def test_the_coordinator_frees_the_rest(store: Store, clock: ManualClock) -> None:
    await park_many(store)
    await store.workers.beat(worker_info("w2", types=TYPES))
    for _ in range(3):
        assert await store.jobs.park() == {}
    assert await parked(store) == 0
    await open_lease(store)
    assert len(await claim_ids(store, types=TYPES, limit=1000, most=1000)) == EACH * len(TYPES)


async def test_what_no_live_worker_knows_stays_parked(store: Store) -> None:
    await park_many(store)
    await store.workers.beat(worker_info("w2", types=TYPES[:1]))
    assert await store.jobs.park() == {}
    assert await parked(store) == EACH * (len(TYPES) - 1)
